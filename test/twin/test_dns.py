# SPDX-License-Identifier: GPL-2.0-only
"""Names: dig asks a name server directly, curl through the C library's resolver."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.namespace import Namespace
from topology.process import Process
from topology.side import GuiseSide, HostSide, Side, wait_until_says

LONG_TEXT = [f"{i} " + "x" * 200 for i in range(8)]  # more than a UDP answer holds


@pytest.fixture
def name_server(far: Namespace, tmp_path: Path) -> Iterator[Process]:
    """dnsmasq in far: on the host's side server.guise.test is 10.77.1.1, on guise's, 10.77.2.1."""
    config = tmp_path / "dnsmasq.conf"
    texts = "".join(f"txt-record=long.guise.test,{text}\n" for text in LONG_TEXT)
    config.write_text(
        "keep-in-foreground\nlog-facility=-\nno-resolv\nno-hosts\nuser=root\npid-file\n"
        "local=/guise.test/\n"
        "address=/host.guise.test/10.77.1.1\naddress=/host.guise.test/fd77:0:0:1::1\n"
        "address=/guise.guise.test/10.77.2.1\naddress=/guise.guise.test/fd77:0:0:2::1\n"
        "host-record=one.guise.test,192.0.2.7,2001:db8::7\n"
        'txt-record=text.guise.test,"a text"\nmx-host=guise.test,mail.guise.test,10\n'
        f"{texts}",
        encoding="ascii",
    )
    with far.start("dnsmasq", "-C", config) as server:
        wait_until_says(server, "started, version")
        yield server


@pytest.mark.also_without_root
@pytest.mark.parametrize(
    "question",
    [
        ["one.guise.test", "A"],
        ["one.guise.test", "AAAA"],
        ["text.guise.test", "TXT"],
        ["guise.test", "MX"],
        ["-x", "192.0.2.7"],
        ["one.guise.test", "A", "+tcp"],
        ["one.guise.test", "A", "@", "one.guise.test", "AAAA", "@", "text.guise.test", "TXT"],
        ["long.guise.test", "TXT", "+bufsize=512"],
        ["nothing.guise.test", "A"],
    ],
    ids=" ".join,
)
def test_dig(host: HostSide, guise: GuiseSide, name_server: Process, question: list[str]) -> None:
    def answer(side: Side) -> list[str]:
        asked = [f"@{side.peer}" if word == "@" else word for word in ("@", *question)]
        words = ["dig", "+noall", "+answer", "+comments", "+nocookie", *asked]
        lines = side.run(*words).expect().text.splitlines()
        # Names and records, and the header's outcome; not its random number.
        kept = [line.split(", id:")[0] for line in lines if not line.startswith("; <<>>")]
        return sorted(kept)

    on_host = answer(host)
    assert any("status: NOERROR" in line or "status: NXDOMAIN" in line for line in on_host)
    assert answer(guise) == on_host


@pytest.mark.also_without_root
def test_dig_over_ipv6(host: HostSide, guise: GuiseSide, name_server: Process) -> None:
    def answer(side: Side) -> str:
        return side.run("dig", "+short", "one.guise.test", f"@{side.peer6}").expect().text

    on_host = answer(host)
    assert on_host == "192.0.2.7\n"
    assert answer(guise) == on_host


def test_dig_says_that_nobody_answers(host: HostSide, guise: GuiseSide) -> None:
    def answer(side: Side) -> tuple[int, bool]:
        done = side.run("dig", "+time=3", "+tries=1", "one.guise.test", f"@{side.peer}")
        return done.status, "connection refused" in done.text

    on_host = answer(host)
    assert on_host == (9, True)
    assert answer(guise) == on_host


def test_curl_resolves_a_name(
    host: HostSide, guise: GuiseSide, name_server: Process, content: Content, tmp_path: Path
) -> None:
    def fetch(side: Side) -> str:
        url = f"http://{side.name}.guise.test:{content.port}/blob"
        if isinstance(side, GuiseSide):
            done = side.run("curl", "-sS", url, options=["--dns", side.peer])
        else:
            resolv_conf = tmp_path / "resolv.conf"
            resolv_conf.write_text(f"nameserver {side.peer}\n", encoding="ascii")
            mount = f'mount --bind {resolv_conf} /etc/resolv.conf && exec "$@"'
            done = side.run("unshare", "-m", "sh", "-c", mount, "-", "curl", "-sS", url)
        return hashlib.sha256(done.expect().stdout).hexdigest()

    on_host = fetch(host)
    assert on_host == content.sha256
    assert fetch(guise) == on_host


def test_curl_says_that_a_name_is_unknown(guise: GuiseSide, name_server: Process) -> None:
    done = guise.run("curl", "-sS", "http://none.guise.test/", options=["--dns", guise.peer])
    assert done.status == 6, done
