# SPDX-License-Identifier: GPL-2.0-only
"""guise setup: root once, then a user's own TCP on the wire without root; and back again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.ping import PATIENT, numbers
from topology.private import Machine, as_user
from topology.process import Finished, eventually
from topology.side import GUISE, PYTHON, GuiseSide, program, proof, wait_until_says

ALICE, BOB = (300_000 + 2 * (os.getpid() % 100_000) + i for i in range(2))


@pytest.fixture
def machine(far: Namespace) -> Iterator[Machine]:
    with Machine(far) as machine:
        if machine.run(*as_user(ALICE, "test", "-x", GUISE)).status:
            pytest.skip(f"{GUISE} lies where only root may go")
        yield machine


def setup(machine: Machine, *flags: str) -> Finished:
    return machine.run(GUISE, "setup", *flags)


def runs(machine: Machine, uid: int, *command: str, flags: tuple[str, ...] = ()) -> Finished:
    return machine.run(*as_user(uid, GUISE, "run", "-v", *flags, "--", *command))


def no_holders(machine: Machine) -> None:
    eventually(lambda: not machine.net.processes("guise-holder"), "the stacks have ended")


def fetch(machine: Machine, uid: int, address: str, *flags: str) -> Finished:
    """A connection to far, which says from where it came."""
    listen = f"TCP{6 if ':' in address else 4}-LISTEN:7000,reuseaddr"
    answer = ["socat", "-d", "-d", listen, "SYSTEM:echo $SOCAT_PEERADDR"]
    place = f"[{address}]" if ":" in address else address
    with machine.far.start(*answer) as server:
        wait_until_says(server, "listening on")
        return runs(machine, uid, "socat", "-u", f"TCP:{place}:7000", "-", flags=flags)


def test_a_user_has_his_own_tcp_on_the_wire(machine: Machine) -> None:
    before = fetch(machine, ALICE, "192.0.2.1").expect()
    assert proof(before)["reach"] == "as far as passt"
    setup(machine, "--user", str(ALICE)).expect()
    for address, seen in (("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "[2001:0db8:")):
        done = fetch(machine, ALICE, address, "--cc", "westwood").expect()
        assert proof(done)["reach"] == "on the wire"
        assert proof(done)["cc"] == "westwood"
        assert "passt" not in done.errors
        assert seen in done.text, done
    no_holders(machine)


def test_a_user_pings_and_is_reached(machine: Machine) -> None:
    setup(machine, "--user", str(ALICE)).expect()
    # As Debian's own, which has a capability of its own that it does not need on a stack.
    machine.shell("install -m 755 $(command -v ping) /run/bin/ping")
    machine.shell("setcap cap_net_raw+ep /run/bin/ping")
    for address in ("192.0.2.1", "2001:db8::1"):
        ping = ["ping", *PATIENT, "-c", "3", "-i", "0.1", address]
        done = runs(machine, ALICE, *ping, flags=("--mode", "preload"))
        assert proof(done)["programs"] == "1 program", done
        assert numbers(done) == ["1", "2", "3"], done
    server = [PYTHON, "-u", "-m", "http.server", "80", "--bind", "::"]
    options = ["-p", "192.0.2.2:7001:80"]
    with machine.start(*as_user(ALICE, GUISE, "run", *options, "--", *server)) as serving:
        wait_until_says(serving, "Serving HTTP")
        # From the host to the stack's own address, and from elsewhere to what is published.
        ask = ["curl", "-sS", "--retry-connrefused", "--retry", "50", "--retry-delay", "1"]
        machine.run(*ask, "http://10.213.0.2/").expect()
        wait_until_says(serving, "::ffff:10.213.0.1 - ")
        machine.far.run(*ask, "http://192.0.2.2:7001/").expect()
        wait_until_says(serving, "169.254.77.2 - ")
    no_holders(machine)


def test_ping_joins_the_stack_however_a_program_starts_it(machine: Machine) -> None:
    machine.shell("install -m 755 $(command -v ping) /run/bin/ping")
    machine.shell("setcap cap_net_raw+ep /run/bin/ping")
    script = (
        "import os, subprocess\n"
        "words = ['ping', '-qc1', '127.0.0.1']\n"
        "path = '/run/bin/ping'\n"
        "subprocess.run(words, check=True)\n"
        "for spawn, name in ((os.posix_spawn, path), (os.posix_spawnp, 'ping')):\n"
        "    assert os.waitpid(spawn(name, words, os.environ), 0)[1] == 0\n"
        "assert os.system('exec ' + ' '.join(words)) == 0\n"
        "os.chdir('/run')\n"
        "os.execv('bin/ping', words)\n"
    )
    done = runs(machine, ALICE, PYTHON, "-c", script, flags=("--link", "none")).expect()
    assert done.text.count("1 received") == 5, done
    assert proof(done)["escaped"] == "0" and "privileges" not in done.errors, done
    # What is no program stays none.
    machine.shell("chmod 644 /run/bin/ping")
    sh = ["sh", "-c", "/run/bin/ping -qc1 127.0.0.1"]
    assert runs(machine, ALICE, *sh, flags=("--link", "none")).status == 126


def test_privileges_that_a_stack_does_not_give_are_not_taken_away(machine: Machine) -> None:
    """More than the network's: such a program does not join."""
    machine.shell("install -m 755 $(command -v ping) /run/bin/ping")
    machine.shell("setcap cap_net_raw,cap_sys_nice+ep /run/bin/ping")
    flags = ("--link", "none", "--mode", "preload")
    refused = runs(machine, ALICE, "ping", "-c1", "127.0.0.1", flags=flags)
    assert refused.status == 126 and "gains privileges" in refused.errors, refused


@pytest.mark.parametrize("groups", ["1 0", f"{ALICE} {ALICE}"])
def test_ping_through_a_passt_that_may_not_is_said(machine: Machine, groups: str) -> None:
    machine.shell(f"echo {groups} > /proc/sys/net/ipv4/ping_group_range")
    done = runs(machine, ALICE, "ping", "-c1", "-W1", "192.0.2.1")
    assert proof(done)["reach"] == "as far as passt"
    said = "sudo sysctl net.ipv4.ping_group_range" in done.errors and "guise setup" in done.errors
    assert said == (groups == "1 0"), done


def test_a_users_multipath_tcp_is_on_the_wire(
    machine: Machine, run_dir: Path, leftovers: Leftovers
) -> None:
    setup(machine, "--user", str(ALICE)).expect()
    server = GuiseSide(machine.far, run_dir, "--mptcp", number=4)
    words = [PYTHON, program("mptcp.py")]
    with server.serve(*words, "listen", "4", server.address, "5000", "tcp", says="ready") as there:
        flags = ["connect", "4", server.address, "5000", "tcp", "0"]
        here = runs(machine, ALICE, *words, *flags, flags=("--mptcp",)).expect()
        done = there.finish().expect()
    assert proof(here)["reach"] == "on the wire"
    for end in (here, done):
        assert json.loads(end.text.splitlines()[-1])["fallback"] is False, end
    no_holders(machine)


def test_a_second_run_of_it_changes_nothing(machine: Machine) -> None:
    setup(machine, "--user", str(ALICE)).expect()
    before = machine.state()
    again = setup(machine, "--user", str(ALICE)).expect()
    assert machine.state() == before
    assert not [line for line in again.text.splitlines() if line[0] in "+-"], again


def test_undo_leaves_nothing(machine: Machine) -> None:
    machine.shell("chmod 600 /dev/net/tun")
    before = machine.state()
    for _ in range(2):
        setup(machine, "--user", str(ALICE)).expect()
        assert proof(fetch(machine, ALICE, "192.0.2.1").expect())["reach"] == "on the wire"
        no_holders(machine)
        setup(machine, "--undo", "--user", str(ALICE)).expect()
        assert machine.state() == before
    assert "nothing is set up" in setup(machine, "--undo").expect().text


def test_what_cannot_be_undone_is_said_and_can_be_undone_later(machine: Machine) -> None:
    before = machine.state()
    setup(machine, "--user", str(ALICE)).expect()
    machine.shell("printf '#!/bin/sh\\nexit 7\\n' > /run/bin/nft; chmod 755 /run/bin/nft")
    failed = setup(machine, "--undo", "--user", str(ALICE))
    assert failed.status and "/etc/guise/forward stop` failed" in failed.errors, failed
    machine.shell("rm /run/bin/nft")
    assert "guise_setup" in machine.shell("nft list tables")
    setup(machine, "--undo", "--user", str(ALICE)).expect()
    assert machine.state() == before


def test_two_users_side_by_side(machine: Machine) -> None:
    before = machine.state()
    setup(machine, "--user", str(ALICE)).expect()
    setup(machine, "--user", str(BOB), "--taps", "2").expect()
    link = ["run", "--link", "tap:guise-u0", "--", "true"]
    stranger = machine.run(*as_user(BOB, GUISE, *link))
    assert stranger.status == 2 and "not yours" in stranger.errors, stranger
    for uid in (ALICE, BOB):
        assert proof(fetch(machine, uid, "192.0.2.1").expect())["reach"] == "on the wire"
    no_holders(machine)
    setup(machine, "--undo", "--user", str(ALICE)).expect()
    assert proof(fetch(machine, ALICE, "192.0.2.1").expect())["reach"] == "as far as passt"
    assert proof(fetch(machine, BOB, "192.0.2.1").expect())["reach"] == "on the wire"
    no_holders(machine)
    setup(machine, "--undo").expect()
    assert machine.state() == before


def test_a_run_beside_the_first_goes_through_passt_or_gets_a_tap_of_its_own(
    machine: Machine,
) -> None:
    setup(machine, "--user", str(ALICE)).expect()
    first = as_user(ALICE, GUISE, "run", "--", "sh", "-c", "echo runs; exec sleep 1000")
    with machine.start(*first) as running:
        wait_until_says(running, "runs")
        second = fetch(machine, ALICE, "192.0.2.1").expect()
        assert proof(second)["reach"] == "as far as passt"
        for word in ("guise-u0", "through passt", "--taps 2"):
            assert word in second.errors, second
        # As the user demands, with every way out.
        script = "ip -br -4 address show eth0; ip route show default"
        named = runs(machine, ALICE, "sh", "-c", script, flags=("--ip", "10.9.8.7/24")).expect()
        assert "10.9.8.7/24" in named.text and "via 10.9.8.1 " in named.text, named
        alone: list[Word] = ["env", "PATH=/nowhere", GUISE, "run", "--", "/bin/true"]
        refused = machine.run(*as_user(ALICE, *alone))
        assert (refused.status, refused.stdout) == (125, b""), refused
        for word in ("guise-u0", "--taps 2", "apt-get install passt"):
            assert word in refused.errors, refused
        setup(machine, "--user", str(ALICE), "--taps", "2").expect()
        addresses = runs(machine, ALICE, "ip", "-br", "-4", "address", "show", "eth0").expect()
        assert "10.213.0.6/30" in addresses.text, addresses
        assert proof(addresses)["reach"] == "on the wire"
    no_holders(machine)


def test_one_run_after_the_other_has_the_tap(machine: Machine) -> None:
    """A stack that is just giving it back is waited for."""
    setup(machine, "--user", str(ALICE)).expect()
    for _ in range(5):
        done = runs(machine, ALICE, "true").expect()
        assert proof(done)["reach"] == "on the wire", done


def test_an_upgraded_stack_keeps_the_only_tap(machine: Machine) -> None:
    """Not the next way out, because the old stack still has the tap."""
    setup(machine, "--user", str(ALICE)).expect()
    name = f"web{os.getpid()}"
    machine.shell(f"echo 'name = \"{name}\"' > /run/web.toml; chmod 644 /run/web.toml")
    machine.run(*as_user(ALICE, GUISE, "up", "/run/web.toml")).expect()
    try:
        upgraded = machine.run(*as_user(ALICE, GUISE, "upgrade", name)).expect()
        assert "the tap guise-u0 can belong to one stack only" in upgraded.errors, upgraded
        assert "tap:eth0" in machine.run(*as_user(ALICE, GUISE, "ls")).text
    finally:
        machine.run(*as_user(ALICE, GUISE, "down", name))
    no_holders(machine)


def test_all_of_it_is_there_again_after_a_reboot(machine: Machine) -> None:
    setup(machine, "--user", str(ALICE)).expect()
    state = machine.state()
    unit = machine.shell("cat /etc/systemd/system/multi-user.target.wants/guise-setup.service")
    start = re.search(r"^ExecStart=(.+)$", unit, re.M)
    assert start and "RemainAfterExit=yes" in unit
    # What a boot forgets: devices, the firewall, /run; and the sysctls of a new namespace.
    machine.shell("ip link delete guise-u0; nft flush ruleset; rm -r /run/guise-setup")
    machine.shell(
        "cd /proc/sys/net; for s in ipv4/conf/*/forwarding ipv6/conf/*/force_forwarding "
        'ipv6/conf/all/forwarding; do [ ! -e "$s" ] || echo 0 > "$s"; done'
    )
    machine.run(*start[1].split()).expect()
    ignored = re.compile(r"^\d+: ", re.M)
    assert ignored.sub("", machine.state()) == ignored.sub("", state)
    assert proof(fetch(machine, ALICE, "192.0.2.1").expect())["reach"] == "on the wire"
    no_holders(machine)


def test_where_ipv6_has_one_switch_for_all_each_interface_is_as_before(machine: Machine) -> None:
    """As on kernels before 6.17, which know no force_forwarding. There the switch sets all."""
    conf = "/proc/sys/net/ipv6/conf"
    machine.shell(
        f"mount -t tmpfs all {conf}/all; echo 0 > {conf}/all/forwarding; "
        f"echo 1 > {conf}/cable/forwarding; echo 1 > {conf}/cable/accept_ra"
    )
    setup(machine, "--user", str(ALICE)).expect()
    values = f"cat {conf}/all/forwarding {conf}/cable/forwarding {conf}/cable/accept_ra"
    assert machine.shell(values).split() == ["1", "1", "2"]
    rules = machine.shell("nft list table ip6 guise_setup")
    assert rules.count('iifname "cable" oifname != "guise*" ct state new') == 1, rules
    machine.shell(f"echo 0 > {conf}/cable/forwarding")  # what the switch does when it is turned off
    setup(machine, "--undo").expect()
    assert machine.shell(values).split() == ["0", "1", "1"]


def test_a_tap_has_ipv6_where_new_interfaces_have_none(machine: Machine) -> None:
    machine.shell("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
    setup(machine, "--user", str(ALICE)).expect()
    assert "fd67:7569:7365:1::1/64" in machine.shell("ip -6 -br address show dev guise-u0")


def test_the_host_becomes_no_router(machine: Machine, far: Namespace) -> None:
    """far asks the machine to forward to a second cable of it."""
    setup(machine, "--user", str(ALICE)).expect()
    rules = machine.shell("nft list table ip guise_setup")
    assert 'iifname "cable" oifname != "guise*" ct state new' in rules, rules


def test_dry_run_prints_and_does_nothing(machine: Machine) -> None:
    before = machine.state()
    said = setup(machine, "--user", str(ALICE), "--dry-run").expect().text
    for word in ("guise-u0", "/etc/guise/taps", "guise-setup.service", "masquerade", "$ /etc/"):
        assert word in said
    assert machine.state() == before


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], ["--user NAME", "sudo"]),
        (["--user", "root"], ["root needs nothing"]),
        (["--user", "no-such-user-here"], ["no-such-user-here", "login or a user id"]),
        (["--user", "1234567", "--taps", "99"], ["99", "16"]),
    ],
)
def test_what_cannot_be_is_named(machine: Machine, flags: list[str], words: list[str]) -> None:
    done = machine.run("env", "-u", "SUDO_USER", GUISE, "setup", *flags)
    assert done.status == 2, done
    for word in words:
        assert word in done.errors, done


def test_root_who_calls_sudo_needs_nothing(machine: Machine) -> None:
    """If root types the command from the documents, guise says that root needs nothing, and does
    nothing."""
    before = machine.state()
    done = machine.run("env", "SUDO_USER=root", GUISE, "setup").expect()
    assert "root needs nothing set up" in done.text and "--user NAME" in done.text, done
    assert machine.state() == before


def test_without_root_it_says_so(machine: Machine) -> None:
    done = machine.run(*as_user(ALICE, GUISE, "setup", "--user", str(ALICE)))
    assert done.status == 2 and "sudo guise setup" in done.errors, done


def test_a_tap_that_is_gone_is_not_replaced_silently(machine: Machine) -> None:
    """Back to passt, which is said where it matters."""
    setup(machine, "--user", str(ALICE)).expect()
    machine.shell("ip link delete guise-u0")
    done = fetch(machine, ALICE, "192.0.2.1", "--cc", "bbr").expect()
    assert proof(done)["reach"] == "as far as passt"
    assert "--cc bbr ends at passt" in done.errors and "guise setup" in done.errors, done
