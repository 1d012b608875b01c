# SPDX-License-Identifier: GPL-2.0-only
"""guise doctor on machines of all kinds: each is made so, by namespaces, rights and denied calls.
Its findings for each are in a file of the folder doctor; GUISE_UPDATE=1 writes these anew. And they
are true: a run without flags works if it says so, and fails otherwise."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from topology.namespace import Namespace, Word
from topology.private import Machine, as_user
from topology.process import Finished
from topology.side import DENY, GUISE

GOLDEN = Path(__file__).with_name("doctor")
USER = 500_000 + os.getpid() % 100_000

Command = Callable[..., list[Word]]


def root(*words: Word) -> list[Word]:
    return list(words)


def user(*words: Word) -> list[Word]:
    return as_user(USER, *words)


def denied(*rules: str) -> Command:
    return lambda *words: user(DENY, *rules, "--", *words)


def root_denied(*rules: str) -> Command:
    return lambda *words: [DENY, *rules, "--", *words]


def without_passt(*words: Word) -> list[Word]:
    return user("env", "PATH=/nowhere", *words)


def without_namespaces(*words: Word) -> list[Word]:
    """In a user namespace that may have none below it, and without its rights."""
    drop = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv "$@"'
    rights = ["--inh-caps=-all", "--bounding-set=-all"]
    return user("unshare", "--user", "--map-root-user", "sh", "-c", drop, "-", *rights, *words)


def little_memory(*words: Word) -> list[Word]:
    return user("prlimit", f"--as={1400 << 20}", *words)


DOCKER = """
table ip filter {
    chain DOCKER-USER { }
    chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; }
}
"""
UFW = """
table ip filter {
    chain ufw-before-forward { }
    chain FORWARD { type filter hook forward priority filter; policy drop; }
}
"""


@dataclass(frozen=True)
class Case:
    name: str
    command: Command
    prepare: str = ""
    works: bool = True
    machine: dict[str, bool] = field(default_factory=dict)


SETUP = f"{GUISE} setup --user {USER} > /dev/null"
CASES = [
    Case("root", root),
    Case("plain-user", user),
    Case("user-after-setup", user, SETUP),
    Case("user-whose-tap-is-gone", user, f"{SETUP}; ip link delete guise-u0"),
    Case("no-passt", without_passt, works=False),
    Case("no-tun-root", root, "rm /dev/net/tun", works=False),
    Case("no-tun-user", user, "rm /dev/net/tun"),
    Case("tun-is-roots-only", user, "chmod 600 /dev/net/tun"),
    Case("tap-but-tun-is-roots-only", user, f"{SETUP}; chmod 600 /dev/net/tun", works=False),
    Case("no-user-namespaces", without_namespaces, works=False),
    Case("no-default-route", user, works=False, machine={"route": False}),
    Case("old-kernel", denied("pidfd_open=ENOSYS", "close_range=ENOSYS")),
    Case("old-mmap", denied("mmap:3:100000=EPERM")),
    Case("no-ptrace", root_denied("ptrace=EPERM")),
    Case("no-nftables", root_denied("socket:2==c=EPROTONOSUPPORT"), works=False),
    Case("docker", root, f"printf '%s' '{DOCKER}' | nft -f -"),
    Case("ufw", root, f"printf '%s' '{UFW}' | nft -f -"),
    Case(
        "router-advertisements",
        root,
        "cd /proc/sys/net/ipv6/conf/cable; echo 1 > forwarding; echo 1 > accept_ra",
    ),
    Case("little-memory", little_memory),
]


@pytest.fixture
def machine(far: Namespace, request: pytest.FixtureRequest) -> Iterator[Machine]:
    with Machine(far, **request.param.machine) as machine:
        if machine.run(*user("test", "-x", DENY, "-a", "-x", GUISE)).status:
            pytest.skip(f"{GUISE} or {DENY} lie where only root may go")
        machine.shell(request.param.prepare or "true")
        yield machine


def general(text: str) -> str:
    """Without what is this machine's own."""
    text = text.replace(platform.release(), "RELEASE").replace(str(GUISE.parent), "BUILD")
    text = re.sub(r"^ok +(tracing|isolation): .*\n", "", text, flags=re.M)
    text = re.sub(r"^note passt: this passt is Debian 12's.*\n.*\n", "", text, flags=re.M)
    return re.sub(r"\buser \d+ has", "user UID has", text)


def calls(command: Command, *words: Word) -> list[Word]:
    return command(GUISE, *words)


@pytest.mark.parametrize(
    ("machine", "case"), [(c, c) for c in CASES], indirect=["machine"], ids=lambda c: c.name
)
def test_what_it_says_is_in_its_file_and_is_true(machine: Machine, case: Case) -> None:
    before = machine.state()
    said = machine.run(*calls(case.command, "doctor"))
    assert said.status == (0 if case.works else 1), said
    assert machine.state() == before
    golden = GOLDEN / f"{case.name}.txt"
    if os.environ.get("GUISE_UPDATE"):
        golden.write_text(general(said.text), encoding="utf-8")
    assert general(said.text) == golden.read_text(encoding="utf-8"), said

    report = json.loads(machine.run(*calls(case.command, "doctor", "--json")).text)
    assert report["version"] == 1 and report["works"] == case.works
    assert all(finding["text"] in said.text for finding in report["findings"])
    bad = [finding for finding in report["findings"] if finding["status"] == "bad"]
    assert bool(bad) != case.works and all(finding["next"] for finding in bad)

    ran: Finished = machine.run(*calls(case.command, "run", "--", "/bin/echo", "ran"))
    assert (ran.status == 0 and ran.text == "ran\n") == case.works, ran


@pytest.mark.parametrize("machine", [Case("any", root)], indirect=True, ids=["root"])
@pytest.mark.parametrize("program", ["/bin/true", str(GUISE)], ids=["preload", "tun"])
def test_programs_way_is_said_and_is_the_one_it_takes(
    machine: Machine, program: str, request: pytest.FixtureRequest
) -> None:
    report = json.loads(machine.run(GUISE, "doctor", "--json", program).expect().text)
    assert report["way"] in request.node.callspec.id.split("-")
    said = machine.run(GUISE, "doctor", program).expect().text
    assert report["text"] in said and all(f["text"] in said for f in report["findings"])
    ran = machine.run(GUISE, "run", "--", program).expect()
    assert ("--mode tun" in ran.errors) == (report["way"] == "tun"), ran


@pytest.mark.parametrize("machine", [Case("any", root)], indirect=True, ids=["root"])
def test_program_that_has_no_way_is_refused_by_both(machine: Machine) -> None:
    """Where no tun can be opened."""
    machine.shell("rm /dev/net/tun")
    report = json.loads(machine.run(GUISE, "doctor", "--json", GUISE).expect(1).text)
    assert report["way"] == "refused"
    assert machine.run(GUISE, "run", "--link", "none", "--", GUISE).status in (2, 125, 126)


@pytest.mark.parametrize("machine", [Case("any", root)], indirect=True, ids=["root"])
def test_wrong_usage(machine: Machine) -> None:
    said = machine.run(GUISE, "doctor", "true").expect().text
    assert machine.run(GUISE, "doctor", "--", "true", "--json").expect().text == said
    assert machine.run(GUISE, "doctor", "no-such-program").status == 127
