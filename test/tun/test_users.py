# SPDX-License-Identifier: GPL-2.0-only
"""--mode tun by a user without root: it needs user namespaces, and a /dev/net/tun that the user may
open."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from topology.namespace import Namespace, Word
from topology.private import Machine, as_user
from topology.process import Finished, eventually
from topology.side import GUISE, proof, wait_until_says

USER = 600_000 + os.getpid() % 100_000


@pytest.fixture
def machine(far: Namespace) -> Iterator[Machine]:
    with Machine(far) as machine:
        if machine.run(*as_user(USER, "test", "-x", GUISE)).status:
            pytest.skip(f"{GUISE} lies where only root may go")
        yield machine
        eventually(lambda: not machine.net.processes("guise-holder"), "the stacks have ended")


def runs(machine: Machine, *words: Word, flags: tuple[str, ...] = ()) -> Finished:
    return machine.run(*as_user(USER, GUISE, "run", "-v", "--mode", "tun", *flags, "--", *words))


def test_a_user_has_a_namespace_of_his_own(machine: Machine) -> None:
    """On the tap that root once made for the user, a program's TCP is the stack's on the wire."""
    machine.run(GUISE, "setup", "--user", str(USER)).expect()
    answer = ["socat", "-d", "-d", "TCP4-LISTEN:7000,fork", "SYSTEM:echo $SOCAT_PEERADDR"]
    with machine.far.start(*answer) as server:
        wait_until_says(server, "listening on")
        done = runs(machine, "socat", "-u", "TCP:192.0.2.1:7000", "-", flags=("--cc", "westwood"))
        assert done.expect().text == "192.0.2.2\n"
        assert proof(done)["cc"] == "westwood" and proof(done)["reach"] == "on the wire"
    # The user's ids, the ports that may be bound, and that programs have no rights over the stack.
    seen = runs(machine, "sh", "-c", "id -u; id -g; grep CapEff /proc/self/status").expect().text
    assert seen.split() == [str(USER), str(USER), "CapEff:", "0" * 16]
    runs(machine, "ping", "-c1", "-W30", "192.0.2.1").expect()
    bind = "import socket; socket.create_server(('', 80)); print('bound')"
    assert runs(machine, "python3", "-c", bind).expect().text == "bound\n"


def test_a_setuid_program_has_its_users_rights_and_no_more(machine: Machine) -> None:
    """Given to guise run without a word on modes, it cannot be preloaded."""
    machine.shell("cp /usr/bin/id /run/bin/setuid; chmod 4755 /run/bin/setuid")
    plain = machine.run(*as_user(USER, "/run/bin/setuid", "-u")).expect().text
    assert plain == "0\n"
    run = as_user(USER, GUISE, "run", "--link", "none", "--", "/run/bin/setuid", "-u")
    done = machine.run(*run).expect()
    assert done.text == f"{USER}\n"
    assert "gains privileges when it starts" in done.errors and "--mode tun" in done.errors


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        ("echo 0 > /proc/sys/user/max_user_namespaces", "does not let you make one"),
        ("chmod 600 /dev/net/tun", "cannot open /dev/net/tun"),
        ("rm /dev/net/tun", "there is no /dev/net/tun"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_left(
    machine: Machine, spoil: str, sentence: str
) -> None:
    run: list[Word] = [GUISE, "run", "--link", "none", "--mode", "tun", "--", "echo", "never"]
    if "max_user" in spoil:
        # In a user namespace that may have none below it, and without its rights.
        rights = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
        inside = ["sh", "-c", f'{spoil} && exec "$@"', "-", *rights]
        done = machine.run(*as_user(USER, "unshare", "--user", "--map-root-user", *inside, *run))
    else:
        machine.shell(spoil)
        done = machine.run(*as_user(USER, *run))
    assert done.status == 2, done
    assert sentence in done.errors and done.errors.count("\n") == 1, done
    assert "never" not in done.text


def test_a_user_has_guests_on_his_named_stack(machine: Machine) -> None:
    """The user enters the user namespace that the stack was given."""
    busybox = "/run/bin/busybox"
    machine.shell(f"cp /bin/busybox {busybox}")
    machine.shell("printf 'guests = true\\n[[link]]\\nkind = \"none\"\\n' > /run/bin/own.toml")
    machine.run(*as_user(USER, GUISE, "up", "--name", "own", "/run/bin/own.toml")).expect()
    done = machine.run(*as_user(USER, GUISE, "run", "--stack", "own", "--", busybox, "id"))
    machine.run(*as_user(USER, GUISE, "down", "own")).expect()
    assert done.expect().text.startswith(f"uid={USER} gid={USER}")
    assert "is statically linked" in done.errors


def test_a_named_stack_that_cannot_have_guests_does_not_come_up(machine: Machine) -> None:
    machine.shell("rm /dev/net/tun")
    machine.shell("printf 'guests = true\\n[[link]]\\nkind = \"none\"\\n' > /run/bin/own.toml")
    up: list[Word] = [GUISE, "up", "--name", "own", "/run/bin/own.toml"]
    done = machine.run(*as_user(USER, *up)).expect(2)
    assert "there is no /dev/net/tun" in done.errors and done.errors.count("\n") == 1, done
    assert machine.run(*as_user(USER, GUISE, "ls", "--json")).expect().text.strip() == "[]"
