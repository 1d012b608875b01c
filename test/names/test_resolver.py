# SPDX-License-Identifier: GPL-2.0-only
"""A host whose name server is on its own loopback, as with systemd-resolved: far has a dnsmasq on
127.0.0.53 and a resolv.conf that names it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topology import etc
from topology.namespace import Namespace
from topology.process import Process
from topology.side import PYTHON, GuiseSide, wait_until_says

RESOLVER = "127.0.0.53"
REACHABLE = "192.0.2.53"  # over the stack as well


@pytest.fixture
def resolv_conf(far: Namespace) -> Iterator[Path]:
    text = f"# a comment\nnameserver {RESOLVER}\nsearch guise.test\noptions timeout:30 attempts:1\n"
    with etc.resolv_conf(far, text) as path:
        yield path


@contextmanager
def dnsmasq(far: Namespace, tmp_path: Path, address: str = RESOLVER) -> Iterator[Process]:
    config = tmp_path / "dnsmasq.conf"
    texts = "".join(f"txt-record=long.guise.test,{i} {'x' * 200}\n" for i in range(8))
    config.write_text(
        "keep-in-foreground\nlog-facility=-\nlog-queries\nno-resolv\nno-hosts\nuser=root\npid-file\n"
        f"listen-address={address}\nbind-interfaces\nlocal=/guise.test/\n"
        f"host-record=one.guise.test,192.0.2.7,2001:db8::7\n{texts}",
        encoding="ascii",
    )
    with far.start("dnsmasq", "-C", config) as server:
        wait_until_says(server, "started, version")
        yield server


UNKNOWN = """
import socket, sys
try:
    socket.getaddrinfo(sys.argv[1], 80)
except socket.gaierror as error:
    print(error)
"""


@pytest.mark.parametrize(
    "command",
    [
        ["dig", "+short", "one.guise.test", "A", "one.guise.test", "AAAA"],
        ["dig", "+short", "+tcp", "one.guise.test"],
        ["dig", "+short", "+bufsize=512", "long.guise.test", "TXT"],
        ["dig", "+search", "+short", "one"],
        ["dig", "+short", "none.guise.test"],
        [PYTHON, "-c", "import socket; print(socket.getaddrinfo('one', 80, socket.AF_INET))"],
        # getent would say the same if nobody answered.
        [PYTHON, "-c", UNKNOWN, "none.guise.test"],
        [PYTHON, "-c", "import socket; print(socket.gethostbyaddr('192.0.2.7'))"],
    ],
    ids=" ".join,
)
def test_names_are_found_through_a_resolver_on_the_hosts_loopback(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path, command: list[str]
) -> None:
    with dnsmasq(far, tmp_path):
        on_host = far.run(*command)
        on_guise = guise.run(*command)
    assert sorted(on_guise.text.splitlines()) == sorted(on_host.text.splitlines())
    assert on_guise.status == on_host.status
    if "none.guise.test" not in command:
        on_host.expect()
        assert on_host.text


def test_a_resolver_on_ipv6_loopback(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path
) -> None:
    resolv_conf.write_text("nameserver ::1\n", encoding="ascii")
    with dnsmasq(far, tmp_path, "::1"):
        assert guise.run("dig", "+short", "one.guise.test").expect().text == "192.0.2.7\n"


def test_the_second_server_is_asked_when_the_first_refuses(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path
) -> None:
    resolv_conf.write_text("nameserver 127.0.0.9\nnameserver 127.0.0.53\n", encoding="ascii")
    with dnsmasq(far, tmp_path):
        done = guise.run("getent", "ahostsv4", "one.guise.test").expect()
    assert done.text.startswith("192.0.2.7 ")


def test_a_resolver_that_is_not_there_is_an_error(
    far: Namespace, guise: GuiseSide, resolv_conf: Path
) -> None:
    """dig prints the same as on the host; a lookup ends before its time-out."""
    words = ["dig", "+tries=1", "one.guise.test"]
    on_host, on_guise = far.run(*words), guise.run(*words)
    assert "connection refused" in on_host.text
    assert "connection refused" in on_guise.text
    assert on_guise.status == on_host.status == 9
    resolv_conf.write_text(f"nameserver {RESOLVER}\noptions timeout:600\n", encoding="ascii")
    assert guise.run("getent", "hosts", "one.guise.test").status == 2


def test_a_resolver_that_does_not_answer_is_no_hang(
    far: Namespace, guise: GuiseSide, resolv_conf: Path
) -> None:
    script = (
        "import socket\n"
        "try:\n"
        "    socket.getaddrinfo('one.guise.test', 80)\n"
        "except socket.gaierror as error:\n"
        "    print(error.errno == socket.EAI_AGAIN)\n"
    )
    resolv_conf.write_text(
        f"nameserver {RESOLVER}\noptions timeout:1 attempts:1\n", encoding="ascii"
    )
    with far.socket(kind=socket.SOCK_DGRAM) as silent:
        silent.bind((RESOLVER, 53))
        assert guise.run(PYTHON, "-c", script).expect().text == "True\n"
        assert silent.recvfrom(4096)[0]  # it was asked


def test_resolv_conf_and_its_other_lines(
    far: Namespace, guise: GuiseSide, resolv_conf: Path
) -> None:
    kept = "search guise.test\noptions timeout:30 attempts:1\n"
    seen = guise.run("cat", "/etc/resolv.conf").expect().text
    assert seen == f"# written by guise run\nnameserver 169.254.77.11\n{kept}"


def test_servers_that_the_stack_reaches_are_asked_over_the_stack(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path
) -> None:
    """One that the host names, and one that a flag does; the other lines are kept."""
    kept = "search guise.test\n"
    resolv_conf.write_text(f"nameserver {REACHABLE}\n{kept}", encoding="ascii")
    far.ip("address", "add", f"{REACHABLE}/32", "dev", "lo")
    with dnsmasq(far, tmp_path, REACHABLE) as server:
        for options in ([], ["--dns", REACHABLE]):
            for words in (["+short"], ["+short", "+tcp"]):
                done = guise.run("dig", *words, "one.guise.test", options=options).expect()
                assert done.text == "192.0.2.7\n"
        seen = guise.run("cat", "/etc/resolv.conf", options=["--dns", REACHABLE]).expect().text
        assert seen == f"# written by guise run\nnameserver 169.254.77.11\n{kept}"
        asked = re.findall(r"query\[A\] one.guise.test from (\S+)", server.said().errors)
        assert asked == [guise.address] * 4


def test_a_host_that_has_other_servers_now_asks_those(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path
) -> None:
    """A laptop moves to another network while a program runs."""
    script = "echo ready; read again; getent ahostsv4 one.guise.test; cat /etc/resolv.conf"
    resolv_conf.write_text("nameserver 127.0.0.9\nnameserver 127.0.0.8\n", encoding="ascii")
    with (
        dnsmasq(far, tmp_path),
        guise.start("sh", "-c", script, stdin=-1) as program,
    ):
        wait_until_says(program, "ready")
        resolv_conf.write_text(f"nameserver {RESOLVER}\n", encoding="ascii")
        assert program.stdin
        program.stdin.write(b"\n")
        program.stdin.close()
        said = program.finish().expect().text
    assert "192.0.2.7 " in said
    assert "nameserver 169.254.77.11\nnameserver 169.254.77.12\n" in said


DIG = """
for how in "$@"; do
    for type in A AAAA MX; do
        dig $how +short host.guise.internal $type gateway.guise.internal $type
    done
    dig $how +short one.guise.test
done
"""


def check_names_of_guise(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path, server: str, mode: str
) -> None:
    resolv_conf.write_text(f"nameserver {server}\n", encoding="ascii")
    if server == REACHABLE:
        far.ip("address", "add", f"{server}/32", "dev", "lo")
    with dnsmasq(far, tmp_path, server) as asked:
        how = ["", "+tcp", "+bufsize=512", "+noedns", "+dnssec"]
        done = guise.run("sh", "-c", DIG, "sh", *how, options=["--mode", mode]).expect()
        first, *others = done.text.split("192.0.2.7\n")
        assert others == [first] * (len(how) - 1) + [""]
        [host, gateway, host6, gateway6] = first.split()
        assert [host, host6] == ["169.254.77.1", "fd67:7569:7365::1"]
        assert [gateway, gateway6] == [guise.peer, guise.peer6]
        assert "one.guise.test" in asked.said().errors
        assert "guise.internal" not in asked.said().errors  # no other server gets these questions


@pytest.mark.also_without_root
@pytest.mark.parametrize("server", [RESOLVER, REACHABLE])
def test_names_of_guise_are_known_to_whoever_asks_a_name_server(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path, server: str
) -> None:
    check_names_of_guise(far, guise, resolv_conf, tmp_path, server, "preload")


@pytest.mark.parametrize("server", [RESOLVER, REACHABLE])
def test_names_of_guise_are_known_to_guests(
    far: Namespace, guise: GuiseSide, resolv_conf: Path, tmp_path: Path, server: str
) -> None:
    check_names_of_guise(far, guise, resolv_conf, tmp_path, server, "tun")


def test_names_of_guise_take_no_name_server(guise: GuiseSide, resolv_conf: Path) -> None:
    done = guise.run("dig", "+short", "host.guise.internal", "gateway.guise.internal").expect()
    assert done.text.split() == ["169.254.77.1", guise.peer]
    # It is no part of the host's localhost.
    words = [
        "dig",
        "+short",
        "+tries=1",
        "+timeout=1",
        "gateway.guise.internal",
        "host.guise.internal",
    ]
    done = guise.run(*words, options=["--localhost", "off"])
    assert done.text.splitlines()[0] == guise.peer
    assert "169.254.77.1\n" not in done.text


def test_hosts_stays(guise: GuiseSide) -> None:
    seen = guise.run("cat", "/etc/hosts").expect().text
    assert seen == Path("/etc/hosts").read_text(encoding="utf-8")
    names = {
        "host.guise.internal": {"169.254.77.1", "fd67:7569:7365::1"},
        "gateway.guise.internal": {guise.peer, guise.peer6},
    }
    for name, addresses in names.items():
        found = guise.run("getent", "ahosts", name).expect().text
        assert {line.split()[0] for line in found.splitlines()} == addresses
