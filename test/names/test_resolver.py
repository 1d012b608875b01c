# SPDX-License-Identifier: GPL-2.0-only
"""A host whose name server is on its own loopback, as with systemd-resolved: far has a dnsmasq on
127.0.0.53 and a resolv.conf that names it."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topology.namespace import Namespace
from topology.process import Process
from topology.side import PYTHON, GuiseSide, wait_until_says

RESOLVER = "127.0.0.53"


@pytest.fixture
def resolv_conf(far: Namespace) -> Iterator[Path]:
    """far's own /etc/resolv.conf: `ip netns exec` puts it there."""
    folder = Path("/etc/netns") / far.name
    folder.mkdir(parents=True)
    try:
        path = folder / "resolv.conf"
        path.write_text(
            f"# a comment\nnameserver {RESOLVER}\nsearch guise.test\n"
            "options timeout:30 attempts:1\n",
            encoding="ascii",
        )
        yield path
    finally:
        shutil.rmtree(folder)
        with contextlib.suppress(OSError):  # another test may have its own there
            folder.parent.rmdir()


@contextmanager
def dnsmasq(far: Namespace, tmp_path: Path, address: str = RESOLVER) -> Iterator[Process]:
    config = tmp_path / "dnsmasq.conf"
    texts = "".join(f"txt-record=long.guise.test,{i} {'x' * 200}\n" for i in range(8))
    config.write_text(
        "keep-in-foreground\nlog-facility=-\nno-resolv\nno-hosts\nuser=root\npid-file\n"
        f"listen-address={address}\nbind-interfaces\nlocal=/guise.test/\n"
        f"host-record=one.guise.test,192.0.2.7,2001:db8::7\n{texts}",
        encoding="ascii",
    )
    with far.start("dnsmasq", "-C", config) as server:
        wait_until_says(server, "started, version")
        yield server


@pytest.mark.parametrize(
    "command",
    [
        ["dig", "+short", "one.guise.test", "A", "one.guise.test", "AAAA"],
        ["dig", "+short", "+tcp", "one.guise.test"],
        ["dig", "+short", "+bufsize=512", "long.guise.test", "TXT"],
        ["dig", "+search", "+short", "one"],
        ["dig", "+short", "none.guise.test"],
        [PYTHON, "-c", "import socket; print(socket.getaddrinfo('one', 80, socket.AF_INET))"],
        ["getent", "hosts", "none.guise.test"],
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
    """dig says the same as on the host; a lookup is over before its time-out."""
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


def test_dns_keeps_the_other_lines(far: Namespace, guise: GuiseSide, resolv_conf: Path) -> None:
    seen = guise.run("cat", "/etc/resolv.conf", options=["--dns", "192.0.2.53"]).expect().text
    assert "nameserver 192.0.2.53\nsearch guise.test\n" in seen
    assert RESOLVER not in seen


def test_servers_that_the_stack_reaches_stay(
    far: Namespace, guise: GuiseSide, resolv_conf: Path
) -> None:
    resolv_conf.write_text("# mine\nnameserver 192.0.2.53\n", encoding="ascii")
    seen = guise.run("cat", "/etc/resolv.conf").expect().text
    assert seen == resolv_conf.read_text(encoding="ascii")


def test_hosts_stays(guise: GuiseSide) -> None:
    seen = guise.run("cat", "/etc/hosts").expect().text
    assert seen == Path("/etc/hosts").read_text(encoding="utf-8")
    found = guise.run("getent", "ahosts", "host.guise.internal").expect().text
    assert {line.split()[0] for line in found.splitlines()} == {"169.254.77.1", "fd67:7569:7365::1"}
