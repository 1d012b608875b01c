# SPDX-License-Identifier: GPL-2.0-only
"""--mptcp: an unmodified program's TCP socket is a Multipath TCP socket, between two programs on
guise and between guise and the host's own MPTCP. MPTCP_INFO says so at both ends.

        one stack ──tap── far ──tap──┐
        10.77.4.2             ──tap──┤ another stack
                                     10.77.2.2, 10.77.3.2
"""

import errno
import json
import os
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Finished
from topology.side import PYTHON, GuiseSide, program, wait_until_says

PROGRAM = [PYTHON, program("mptcp.py")]
PORT = "5000"
# Asked of a socket that is TCP, MPTCP_INFO is refused.
PLAIN_TCP = {"error": os.strerror(errno.EOPNOTSUPP)}

needs_host_mptcp = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="the host's kernel has no MPTCP"
)


def listen(address: str, protocol: str = "tcp", family: str = "4") -> list[str]:
    return [*PROGRAM, "listen", family, address, PORT, protocol]


def connect(address: str, subflows: int = 0, protocol: str = "tcp", family: str = "4") -> list[str]:
    return [*PROGRAM, "connect", family, address, PORT, protocol, str(subflows)]


def ends(client: Finished, server: Finished) -> tuple[dict[str, object], dict[str, object]]:
    """What MPTCP_INFO said at each, after a look at the checksums."""
    one, other = (json.loads(end.expect().text.splitlines()[-1]) for end in (client, server))
    assert one.pop("right"), client
    assert one.pop("sha256") == other.pop("sha256"), f"{client}\n{server}"
    return one, other


@pytest.fixture
def two_paths(far: Namespace, run_dir: Path, leftovers: Leftovers) -> GuiseSide:
    return GuiseSide(far, run_dir, "--mptcp", paths=2)


@pytest.fixture
def one_path(far: Namespace, run_dir: Path, leftovers: Leftovers) -> GuiseSide:
    return GuiseSide(far, run_dir, "--mptcp", number=4)


@pytest.mark.parametrize("family", ["4", "6"])
def test_two_programs_on_guise_use_both_paths(
    one_path: GuiseSide, two_paths: GuiseSide, family: str
) -> None:
    """The listener is bound to all addresses: one bound to a single address refuses the joins
    that come to another."""
    anywhere = "0.0.0.0" if family == "4" else "::"
    address = one_path.address if family == "4" else one_path.address6
    with one_path.serve(*listen(anywhere, family=family), says="ready") as server:
        client = two_paths.run(*connect(address, 1, family=family))
        both = {"subflows": 1, "fallback": False}
        assert ends(client, server.finish()) == (both, both)


def test_listener_with_two_paths_is_reached_on_both(
    one_path: GuiseSide, two_paths: GuiseSide
) -> None:
    """Only the initiator opens subflows to addresses it is not told of: here the paths of the
    listener stay one."""
    with two_paths.serve(*listen("0.0.0.0"), says="ready") as server:
        client = one_path.run(*connect(two_paths.address, 0))
        single = {"subflows": 0, "fallback": False}
        assert ends(client, server.finish()) == (single, single)


@needs_host_mptcp
def test_listener_of_the_host(far: Namespace, two_paths: GuiseSide) -> None:
    far.run("ip", "mptcp", "limits", "set", "subflows", "4").expect()
    with far.start(*listen("0.0.0.0", "mptcp")) as server:
        wait_until_says(server, "ready")
        client = two_paths.run(*connect(two_paths.peer, 1))
        both = {"subflows": 1, "fallback": False}
        assert ends(client, server.finish()) == (both, both)


@needs_host_mptcp
def test_client_of_the_host(far: Namespace, one_path: GuiseSide) -> None:
    with one_path.serve(*listen("0.0.0.0"), says="ready") as server:
        client = far.run(*connect(one_path.address, 0, "mptcp"))
        single = {"subflows": 0, "fallback": False}
        assert ends(client, server.finish()) == (single, single)


def test_client_without_mptcp_is_served_over_tcp(far: Namespace, one_path: GuiseSide) -> None:
    with one_path.serve(*listen("0.0.0.0"), says="ready") as server:
        client, at_server = ends(far.run(*connect(one_path.address)), server.finish())
        assert client == PLAIN_TCP
        assert at_server in (PLAIN_TCP, {"subflows": 0, "fallback": True})


def test_without_the_flag_sockets_are_tcp(far: Namespace, guise: GuiseSide) -> None:
    with far.start(*listen("0.0.0.0")) as server:
        wait_until_says(server, "ready")
        client = guise.run(*connect(guise.peer))
        assert ends(client, server.finish()) == (PLAIN_TCP, PLAIN_TCP)
