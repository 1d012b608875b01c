# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own test program mptcp_connect, unmodified, between two stacks of guise, in the ways
in which the kernel's mptcp_connect.sh calls it.

        one stack ──tap── far ──tap── another stack
        listens                       connects
        10.77.4.2                     10.77.2.2

Each end sends a file to the other, and neither knows of guise. Where the kernel's script puts
netem on hosts between the two, each stack impairs what it sends itself: so both directions are
impaired. Both files must arrive as they were, and the stacks' counters must say that it was MPTCP
(or, where one end asks for TCP, that it was not).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from topology.closed import UNTIL_CLOSED
from topology.content import blob
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.side import BUILD, GuiseSide

PROGRAM = BUILD / "test" / "mptcp_connect"
PORT = 10000
POLL_SECONDS = 30  # as in the kernel's script: how long nothing may happen
SECONDS = 2 * POLL_SECONDS + 1

slow = pytest.mark.slow
pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(),
    reason="needs mptcp_connect of Debian's package linux-source-6.12: make check builds it",
)

# Each stack stays until both have closed all connections. $0 is "listener" or "connector".
SETTLE = f"""
{UNTIL_CLOSED}
touch settled.$0
until [ -e settled.connector ] && [ -e settled.listener ]; do sleep 0.05; done
cat /proc/net/netstat
exit $status
"""
# Says when the program listens; at the end, what the stack has counted.
LISTEN = f"""
"$@" <in.$0 >out.$0 & pid=$!
until cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{PORT:04X} .* 0A '; do
    kill -0 $pid || exit 1
    sleep 0.02
done
echo listens
wait $pid
status=$?
{SETTLE}
"""
CONNECT = f"""
"$@" <in.$0 >out.$0
status=$?
{SETTLE}
"""


def counters(text: str) -> dict[str, int]:
    """Of /proc/net/netstat, a line of names and a line of values for each protocol."""
    found: dict[str, int] = {}
    lines = [line.split() for line in text.splitlines() if re.match(r"\w+Ext: ", line)]
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        prefix = names[0].removesuffix(":")
        found |= {prefix + n: int(v) for n, v in zip(names[1:], values[1:], strict=True)}
    return found


@dataclass
class Ends:
    """Two stacks, and how they are made."""

    far: Namespace
    run_dir: Path
    folder: Path
    options: list[str] = field(default_factory=list)  # of guise run, of both
    listener_options: list[str] = field(default_factory=list)
    connector_options: list[str] = field(default_factory=list)
    paths: int = 1
    repeat: int = 1
    alike: bool = False  # both send the same
    size: int = 3_000_000 + 321

    def transfer(
        self,
        family: int,
        *flags: str,
        protocols: tuple[str, str] = ("MPTCP", "MPTCP"),
        connector_flags: Sequence[str] = (),
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Protocols: the connecting end's, the listening end's. The counters of each, in that
        order."""
        connecting, listening = protocols
        one = GuiseSide(self.far, self.run_dir, *self.options, *self.listener_options, number=4)
        other = GuiseSide(
            self.far, self.run_dir, *self.options, *self.connector_options, paths=self.paths
        )
        anywhere, address = {4: ("0.0.0.0", one.address), 6: ("::", one.address6)}[family]
        words = [str(PROGRAM), "-t", str(POLL_SECONDS), "-p", str(PORT), *flags]
        for number, end in enumerate(("connector", "listener")):
            more = 0 if self.alike else number
            content = blob(self.size + more, 1 + more) * self.repeat
            (self.folder / f"in.{end}").write_bytes(content)
        server = [*words, "-l", "-s", listening, anywhere]
        with one.serve(
            "sh", "-c", LISTEN, "listener", *server, says="listens", cwd=self.folder
        ) as process:
            client = [*words, *connector_flags, "-s", connecting, address]
            there = other.run(
                "sh", "-c", CONNECT, "connector", *client, seconds=SECONDS, cwd=self.folder
            )
            here = process.finish(SECONDS)
            there.expect()
            here.expect()
        for source, sink in ("connector", "listener"), ("listener", "connector"):
            sent = (self.folder / f"in.{source}").read_bytes()
            assert (self.folder / f"out.{sink}").read_bytes() == sent, f"of {source}: {here}{there}"
        return counters(there.text), counters(here.text)

    def check(self, family: int, *flags: str, connections: int = 1) -> None:
        """A transfer by MPTCP, that stays MPTCP."""
        there, here = self.transfer(family, *flags)
        # With reordering, what follows the third packet may arrive before it: then it is TCP.
        reordered = here["TcpExtTCPOFOQueue"] > 0
        assert here["MPTcpExtMPCapableSYNRX"] >= connections
        assert there["MPTcpExtMPCapableSYNTX"] >= connections
        if not reordered:
            assert here["MPTcpExtMPCapableACKRX"] >= connections
            assert here["MPTcpExtMPCapableFallbackACK"] == 0
        for end in there, here:
            assert end["MPTcpExtDataCsumErr"] == 0


@pytest.fixture
def ends(far: Namespace, run_dir: Path, tmp_path: Path, leftovers: Leftovers) -> Ends:
    return Ends(far, run_dir, tmp_path)


families = pytest.mark.parametrize("family", [4, 6])

# The kernel's script draws these: a delay of 0 to 49 ms, a loss of 0.01 to 1 %, a reordering of
# up to 10 %, by a quarter of the delay. Each end impairs what it sends.
IMPAIRMENTS = {
    "none": [],
    "loss": ["delay 10ms loss 0.5%"],
    "reorder": ["delay 5ms reorder 95% 50%"],
    "loss-and-reorder": ["delay 5ms loss 0.3% reorder 92% 30%"],
}
HARDER = {
    "loss-1": ["delay 2ms loss 1%"],
    "long": ["delay 49ms loss 0.1%"],
    "reorder-gap": ["delay 12ms reorder 25% 50% gap 5"],
    "reorder-all": ["delay 10ms loss 0.99% reorder 90% 99%"],
}


def impaired(ends: Ends, netem: list[str]) -> Ends:
    ends.options += [word for spec in netem for word in ("--netem", spec)]
    return ends


@families
@pytest.mark.parametrize("kind", IMPAIRMENTS)
def test_files_cross(ends: Ends, family: int, kind: str) -> None:
    impaired(ends, IMPAIRMENTS[kind]).check(family)


@slow
@families
@pytest.mark.parametrize("offload", ["on", "off"])
@pytest.mark.parametrize("mode", ["poll", "mmap", "sendfile"])
@pytest.mark.parametrize("kind", HARDER)
def test_files_cross_a_harder_path(
    ends: Ends, family: int, kind: str, mode: str, offload: str
) -> None:
    ends.options += ["--offload", offload]
    impaired(ends, HARDER[kind]).check(family, "-m", mode)


@slow
@families
@pytest.mark.parametrize("mode", ["poll", "mmap", "sendfile"])
@pytest.mark.parametrize("kind", IMPAIRMENTS)
def test_files_cross_with_checksums(ends: Ends, family: int, kind: str, mode: str) -> None:
    ends.options += ["--sysctl", "net.mptcp.checksum_enabled=1"]
    impaired(ends, IMPAIRMENTS[kind]).check(family, "-m", mode)


@pytest.mark.parametrize(
    ("family", "protocols"),
    [
        pytest.param(4, ("MPTCP", "TCP")),
        pytest.param(6, ("TCP", "MPTCP")),
        pytest.param(6, ("MPTCP", "TCP"), marks=slow),
        pytest.param(4, ("TCP", "MPTCP"), marks=slow),
        pytest.param(4, ("TCP", "TCP"), marks=slow),
        pytest.param(6, ("TCP", "TCP"), marks=slow),
    ],
)
def test_one_end_without_mptcp(ends: Ends, family: int, protocols: tuple[str, str]) -> None:
    there, here = ends.transfer(family, protocols=protocols)
    assert (there["MPTcpExtMPCapableSYNTX"] > 0) == (protocols[0] == "MPTCP")
    assert there["MPTcpExtMPCapableSYNACKRX"] == 0
    assert here["MPTcpExtMPCapableACKRX"] == 0


@families
def test_second_path_joins(ends: Ends, family: int) -> None:
    """What the script does not look at: its hosts have one path. The flag -j waits for the join."""
    ends.options, ends.paths = ["--mptcp"], 2
    there, here = ends.transfer(family, "-j")
    assert here["MPTcpExtMPJoinAckRx"] >= 1
    assert there["MPTcpExtMPJoinSynAckRx"] >= 1


@slow
@families
@pytest.mark.parametrize("kind", IMPAIRMENTS)
def test_second_path_joins_an_impaired_one(ends: Ends, family: int, kind: str) -> None:
    ends.options, ends.paths = ["--mptcp"], 2
    impaired(ends, IMPAIRMENTS[kind]).check(family, "-j")


@slow
@families
def test_connection_begins_by_a_cookie(ends: Ends, family: int) -> None:
    ends.listener_options = ["--sysctl", "net.ipv4.tcp_syncookies=2"]
    _, here = ends.transfer(family)
    assert here["TcpExtSyncookiesSent"] >= 1  # more, where a busy machine answers late
    assert here["TcpExtSyncookiesRecv"] >= 1
    assert here["MPTcpExtMPCapableACKRX"] >= 1


@slow
@families
@pytest.mark.parametrize("peek", ["saveWithPeek", "saveAfterPeek"])
def test_peeking_reads_the_same(ends: Ends, family: int, peek: str) -> None:
    ends.check(family, "-P", peek)


@slow
@families
@pytest.mark.parametrize("buffer", [8192, 65536])
def test_small_buffers(ends: Ends, family: int, buffer: int) -> None:
    ends.size = 600_000
    ends.check(family, "-S", str(buffer), "-R", str(buffer))


@slow
@families
def test_first_bytes_go_with_the_syn(ends: Ends, family: int) -> None:
    """TCP Fast Open of an MPTCP socket; a second connection would have the cookie."""
    ends.listener_options = ["--sysctl", "net.ipv4.tcp_fastopen=2"]
    ends.connector_options = ["--sysctl", "net.ipv4.tcp_fastopen=1"]
    ends.check(family, "-o", "MPTFO")


@slow
@families
def test_socket_connects_again_after_a_disconnect(ends: Ends, family: int) -> None:
    """The same socket three times, and each time both send the whole file."""
    ends.repeat, ends.alike, ends.size = 3, True, 400_000
    (ends.folder / "again").write_bytes(blob(ends.size, 1))
    ends.check(family, "-I", "3", "-i", "again", connections=3)
