# SPDX-License-Identifier: GPL-2.0-only
"""Root among users (docs/security.md): no other user gets onto root's stack, and nothing that
another user has made, said or named has root's guise do anything."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from topology.namespace import Namespace, Word
from topology.private import Machine, as_user
from topology.process import Finished, eventually
from topology.side import BUILD, GUISE, PYTHON, wait_until_says

pytestmark = pytest.mark.skipif(bool(os.geteuid()), reason="needs root, to be other users")

ATTACKER = Path(__file__).parent / "attacker.py"
ALICE = 700_000 + os.getpid() % 100_000
HER_FOLDER = f"/run/user/{ALICE}/guise"
FALLBACK = "/tmp/guise-0"
ALONE = 'name = "web"\n[[link]]\nkind = "none"\n'

# What a command of root's could have changed, or removed.
WORLD = """
cat /run/victim; ls -l /run/victim; nft list tables; ip -br link | cut -d' ' -f1
cd /proc/sys/net; grep . ipv4/conf/*/forwarding ipv4/conf/*/rp_filter ipv6/conf/*/forwarding
ls -lai /run /run/guise; find /tmp /run/user -printf '%p %i %M %u %l\\n' | sort
"""


@pytest.fixture
def machine(far: Namespace) -> Iterator[Machine]:
    with Machine(far) as machine:
        if machine.run(*as_user(ALICE, "test", "-r", GUISE)).status:
            pytest.skip(f"{GUISE} lies where only root may go")
        machine.shell(
            "mount -t tmpfs -o mode=1777 private /tmp; echo kept > /run/victim; "
            "nft add table ip victim; ip tuntap add victim0 mode tap; "
            f"mkdir -p /run/user/{ALICE}; chown {ALICE}:{ALICE} /run/user/{ALICE}"
        )
        yield machine


def guise(machine: Machine, *words: str, folder: str | None = None) -> Finished:
    where = [f"GUISE_RUNDIR={folder}"] if folder else []
    return machine.run("env", *where, GUISE, *words)


def without_run(machine: Machine, *words: str) -> Finished:
    """As root who may not write in /run: what is left is a folder in /tmp."""
    script = 'mount -o remount,bind,ro /run && exec env -u XDG_RUNTIME_DIR "$@"'
    return machine.run("unshare", "--mount", "sh", "-c", script, "sh", GUISE, *words)


def obeyed(done: Finished) -> set[str]:
    """What a terminal would obey in it."""
    said = done.text + done.errors
    return {c for c in said if not c.isprintable() and c != "\n"}


class Root:
    """Root's two stacks in /run/guise: a named one, and one with a tap, and so with a journal."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.shell(f"cat > /run/web.toml <<'END'\n{ALONE}END")
        guise(machine, "up", "/run/web.toml").expect()
        self.program = machine.start(GUISE, "run", "--", "sh", "-c", "echo ready; exec sleep 1000")
        wait_until_says(self.program, "ready")
        [run] = [s for s in self.stacks() if not s["named"]]
        self.holder, [self.member] = run["holder"], run["pids"]

    def stacks(self) -> list[dict[str, Any]]:
        found = json.loads(guise(self.machine, "ls", "--json").expect().text)
        assert isinstance(found, list)
        return found

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *raised: object) -> None:
        self.program.stop()
        guise(self.machine, "down", "web")
        eventually(lambda: self.machine.run("test", "-e", "/run/guise").status, "all has ended")

    def goes_on(self, where: str) -> None:
        """Root's next commands, in that folder: each is done as if there were none, or refused."""
        for words in (
            ["ls"],
            ["ls", "--json"],
            ["__complete", "exec", ""],
            ["exec", "web", "--", "touch", "/run/owned"],
            ["run", "--stack", "web", "--", "touch", "/run/owned"],
            ["capture", "web", "-w", "/run/owned"],
            ["upgrade", "web"],
            ["detach", "1"],
            ["down", "web"],
            ["undo", f"{where}/x.json"],
            ["run", "--link", "none", "--", "true"],
            ["run", "--", "true"],
        ):
            if where == FALLBACK:
                done = without_run(self.machine, *words)
            else:
                done = guise(self.machine, *words, folder=where)
            assert not obeyed(done), (words, done)
            assert words[0] not in ("exec", "capture", "upgrade") or done.status, done
            assert words[-1] != "true" or words[1] != "--link" or not done.status, done


@pytest.mark.parametrize(
    "attempts", [550, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_no_attempt_of_another_user_succeeds(machine: Machine, attempts: int) -> None:
    """To join, to squat names and folders, to plant journals; and root's next command changes
    nothing."""
    each = 275 if attempts < 1000 else 1000
    with Root(machine) as root:
        before = machine.shell("cat /run/victim; nft list tables; ip -br link | cut -d' ' -f1")
        for seed in range(attempts // each):
            numbers = [each, seed, root.holder, root.member]
            words: list[Word] = [PYTHON, ATTACKER, "try", *map(str, numbers)]
            done = machine.run(*as_user(ALICE, *words)).expect()
            assert "gained" not in done.text, done
            tried = json.loads(done.text.splitlines()[-1])["tried"]
            assert sum(tried.values()) == each and len(tried) == 11
            liar = machine.start(
                *as_user(ALICE, PYTHON, ATTACKER, "lie", HER_FOLDER, version(machine))
            )
            with liar:
                wait_until_says(liar, "ready")
                world = machine.shell(WORLD)
                for where in (HER_FOLDER, FALLBACK):
                    root.goes_on(where)
                assert machine.shell(WORLD) == world
                asked = set(liar.said().text.splitlines()) - {"ready"}
                # To list, to end, to let go: nothing that hands something out.
                listing = {"asked status", "asked connections"}
                assert asked <= listing | {"asked down", "asked detach"}, asked
            guise(machine, "ls").expect()
        assert len(root.stacks()) == 2
        now = machine.shell("cat /run/victim; nft list tables; ip -br link | cut -d' ' -f1")
        assert now == before


def version(machine: Machine) -> str:
    return guise(machine, "--version").expect().text.split()[1]


class Alices:
    """A stack of alice's."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.shell(f"cat > /run/user/{ALICE}/web.toml <<'END'\n{ALONE}END")
        self.call("up", f"/run/user/{ALICE}/web.toml").expect()

    def call(self, *words: str) -> Finished:
        return self.machine.run(*as_user(ALICE, "env", f"GUISE_RUNDIR={HER_FOLDER}", GUISE, *words))

    def __enter__(self) -> Alices:
        return self

    def __exit__(self, *raised: object) -> None:
        self.call("down", "web")


@pytest.mark.parametrize(
    "words",
    [
        ["exec", "web", "--", "touch", "/run/user/{uid}/made"],
        ["run", "--stack", "web", "--", "touch", "/run/user/{uid}/made"],
        ["capture", "web", "--write", "/run/user/{uid}/packets"],
        ["upgrade", "web", "--drain", "1s"],
    ],
    ids=lambda words: words[0],
)
def test_root_uses_a_users_stack_with_that_users_rights(machine: Machine, words: list[str]) -> None:
    """Root is refused, and what the error says to type does it as that user."""
    words = [word.format(uid=ALICE) for word in words]
    with Alices(machine):
        done = guise(machine, *words, folder=HER_FOLDER).expect(2)
        # Of the folder, too, root need not be told that it is hers.
        assert done.errors.startswith(f"guise: the stack web belongs to user {ALICE}"), done
        assert machine.run("test", "-e", f"/run/user/{ALICE}/made").status
        typed = done.errors.strip().partition("as that user: ")[2]
        assert typed.endswith(f" guise {' '.join(words)}")
        if words[0] == "capture":
            return  # it ends with the stack
        machine.shell(f"ln -sf {GUISE} /run/bin/guise; chmod 755 /run/bin; {typed}")
        if "touch" in words:
            assert machine.shell(f"stat -c %u /run/user/{ALICE}/made") == f"{ALICE}\n"


def test_root_lists_and_ends_a_users_stack(machine: Machine) -> None:
    with Alices(machine):
        [stack] = json.loads(guise(machine, "ls", "--json", folder=HER_FOLDER).expect().text)
        assert stack["stack"] == "web" and stack["members"] == 0
        assert not guise(machine, "ls", folder=HER_FOLDER).expect().errors
        assert not guise(machine, "down", "web", folder=HER_FOLDER).expect().errors
        assert machine.run("test", "-e", HER_FOLDER).status


@pytest.mark.parametrize("mode", ["0775", "0757", "1777"])
def test_a_folder_that_others_may_write_is_refused(machine: Machine, mode: str) -> None:
    machine.shell(f"mkdir /run/own; chmod {mode} /run/own; cp /run/victim /run/own/x.json")
    done = guise(machine, "up", "/run/web.toml", folder="/run/own")
    assert done.status and "other users may write in /run/own" in done.errors, done
    assert machine.shell("ls /run/own") == "x.json\n"


# ---- the environment --------------------------------------------------------------------


def test_a_kernel_image_of_another_user_is_not_used(machine: Machine) -> None:
    machine.shell(f"install -m 644 -o {ALICE} {BUILD}/guise-kernel /tmp/kernel")
    run = ["GUISE_KERNEL=/tmp/kernel", str(GUISE), "run", "--link", "none", "--", "true"]
    done = machine.run("env", *run)
    assert done.status and f"belongs to user {ALICE}" in done.errors, done
    machine.shell("chown 0 /tmp/kernel; chmod 664 /tmp/kernel")
    done = machine.run("env", *run)
    assert done.status and "other users may write the kernel image" in done.errors, done
    machine.shell("chmod 644 /tmp/kernel")
    machine.run("env", *run).expect()
    machine.run(*as_user(ALICE, "env", *run)).expect()


def test_parts_of_guise_of_another_user_are_not_used(machine: Machine) -> None:
    machine.shell(
        f"mkdir /tmp/lib; cp {BUILD}/guise-kernel {BUILD}/libguise-preload.so /tmp/lib; "
        "printf '#!/bin/sh\\ntouch /run/owned\\n' > /tmp/lib/guise-holder; "
        f"chmod 755 /tmp/lib/guise-holder; chown -R {ALICE} /tmp/lib"
    )
    run = ["GUISE_LIBDIR=/tmp/lib", str(GUISE), "run", "--link", "none", "--", "true"]
    done = machine.run("env", *run)
    assert done.status and f"belongs to user {ALICE}" in done.errors, done
    assert machine.run("test", "-e", "/run/owned").status


@pytest.mark.parametrize("program", ["guise", "guise-holder"])
@pytest.mark.parametrize("way", ["capabilities", "setuid"])
def test_guise_does_not_run_with_more_rights_than_its_caller(
    machine: Machine, program: str, way: str
) -> None:
    machine.shell(f"install -m 755 {BUILD}/{program} /run/bin/more")
    if way == "setuid":
        machine.shell("chmod u+s /run/bin/more")
    else:
        machine.shell("setcap cap_net_admin+ep /run/bin/more")
    # With the bounding set, or the capabilities of the file could not be had.
    user = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups"]
    done = machine.run(*user, "/run/bin/more", "ls")
    assert done.status and "more rights than its caller" in done.errors, done
    root = machine.run("/run/bin/more", "ls")
    assert "more rights" not in root.errors


def test_a_name_of_a_program_is_not_obeyed(machine: Machine) -> None:
    """One that is on the host's stack is named in messages."""
    name = "/tmp/evil\x1b[2J\u009b2J\nguise: forged"
    machine.run("cp", GUISE, name).expect()
    done = guise(machine, "run", "-v", "--link", "none", "--", "sh", "-c", '"$0" --version', name)
    assert "evil?[2J?2J?guise: forged is written in Go" in done.errors, done
    assert not obeyed(done) and "\nguise: forged" not in done.errors, done
