# SPDX-License-Identifier: GPL-2.0-only
"""The host's localhost, as a program on a stack reaches it: host.guise.internal. The host is the
namespace far, whose localhost is its own."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from topology.ends import each_end_comes_by_itself
from topology.etc import resolv_conf
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Process, eventually
from topology.side import PYTHON, GuiseSide, wait_until_says

HOST = {"127.0.0.1": "169.254.77.1", "::1": "fd67:7569:7365::1"}
PORT = 8000


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@contextmanager
def http_server(far: Namespace, address: str, folder: Path) -> Iterator[Process]:
    words = ["-u", "-m", "http.server", str(PORT), "--bind", address]
    with far.start(PYTHON, *words, "-d", folder) as server:
        wait_until_says(server, "Serving HTTP")
        yield server


def url(address: str, path: str = "", port: int = PORT) -> str:
    bracketed = f"[{address}]" if ":" in address else address
    return f"http://{bracketed}:{port}/{path}"


@pytest.mark.parametrize("address", HOST)
def test_curl_downloads_from_a_server_on_the_hosts_localhost(
    far: Namespace, guise: GuiseSide, tmp_path: Path, address: str
) -> None:
    blob = bytes(range(256)) * 30000
    (tmp_path / "blob").write_bytes(blob)
    with http_server(far, address, tmp_path):
        done = guise.run("curl", "-sS", url(HOST[address], "blob")).expect()
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(blob).digest()
        by_name = guise.run("curl", "-sS", url("host.guise.internal", "blob")).expect()
        assert len(by_name.stdout) == len(blob)


CONNECT = """
import errno, socket, sys
for address in sys.argv[2:]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for how in range(3):
        with socket.socket(family, socket.SOCK_DGRAM if how == 2 else socket.SOCK_STREAM) as s:
            s.settimeout(30)
            try:
                if how == 1:
                    s.setblocking(False)
                    assert s.connect_ex((address, int(sys.argv[1]))) == errno.EINPROGRESS
                    import select
                    poll = select.poll()
                    poll.register(s, select.POLLOUT)
                    events = poll.poll(30000)[0][1]
                    error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    print(events, errno.errorcode.get(error, error))
                    continue
                s.connect((address, int(sys.argv[1])))
                if how == 2:
                    s.send(b"x")
                    s.recv(1)
                print("connected")
            except OSError as error:
                print(errno.errorcode.get(error.errno, str(error)))
"""


def test_a_closed_port_refuses_as_on_the_host(far: Namespace, guise: GuiseSide) -> None:
    """connect() itself fails, and the sender of a datagram gets an error, too."""
    on_host = [
        line
        for line in far.run(PYTHON, "-c", CONNECT, "9", *HOST).expect().text.splitlines()
        if line != "connected"
    ]
    assert on_host.count("ECONNREFUSED") == 4, on_host
    words = [PYTHON, "-c", CONNECT, "9", *HOST.values()]
    on_guise = guise.run(*words).expect().text.splitlines()
    assert [line for line in on_guise if "ECONNREFUSED" in line] == on_guise
    assert on_guise.count("ECONNREFUSED") == 4
    # Without a wait, poll() reports the error with the same events as for a closed port inside.
    inside = guise.run(PYTHON, "-c", CONNECT, "9", "127.0.0.1").expect().text.splitlines()
    assert inside[0] == on_guise[0]


@pytest.mark.parametrize("address", HOST)
def test_udp_reaches_the_hosts_localhost_and_back(
    far: Namespace, guise: GuiseSide, address: str
) -> None:
    script = (
        "import socket, sys\n"
        "family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET\n"
        "for bound in range(3):\n"
        "    with socket.socket(family, socket.SOCK_DGRAM) as s:\n"
        "        s.settimeout(30)\n"
        "        for size in (0, 1, 1400, 20000):\n"
        "            s.sendto(bytes(size), (sys.argv[1], int(sys.argv[2])))\n"
        "            data, peer = s.recvfrom(65536)\n"
        "            assert peer[:2] == (sys.argv[1], int(sys.argv[2])), peer\n"
        "            print(len(data))\n"
    )
    with far.socket(family(address), socket.SOCK_DGRAM) as server:
        server.bind((address, 0))
        words = [PYTHON, "-c", script, HOST[address], str(server.getsockname()[1])]
        with guise.start(*words) as client:
            for _ in range(12):
                data, peer = server.recvfrom(65536)
                server.sendto(data, peer)
            assert client.finish().expect().text.split() == ["0", "1", "1400", "20000"] * 3


def test_each_direction_ends_by_itself(far: Namespace, guise: GuiseSide) -> None:
    with far.socket() as server:
        server.bind(("127.0.0.1", 0))
        each_end_comes_by_itself(guise, HOST["127.0.0.1"], server)


def test_many_connections_at_once(far: Namespace, guise: GuiseSide, tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"small")
    script = (
        "import concurrent.futures, sys, urllib.request\n"
        "with concurrent.futures.ThreadPoolExecutor(32) as pool:\n"
        "    get = lambda i: urllib.request.urlopen(sys.argv[1], timeout=60).read()\n"
        "    print(sum(map(len, pool.map(get, range(400)))))\n"
    )
    with http_server(far, "127.0.0.1", tmp_path):
        done = guise.run(PYTHON, "-c", script, url(HOST["127.0.0.1"], "small"))
        assert done.expect().text == "2000\n"


def test_it_can_be_switched_off(far: Namespace, guise: GuiseSide, tmp_path: Path) -> None:
    with http_server(far, "127.0.0.1", tmp_path) as server:
        for options in (["--localhost", "off"], ["--link", "none"]):
            linked = options[0] != "--link"
            stack = guise if linked else GuiseSide(far, guise.run_dir, paths=0)
            # With proof: a program on the host's stack would fail as well.
            stack.run("curl", "-sS", url(HOST["127.0.0.1"]), options=options).expect(7)
            stack.run("getent", "hosts", "host.guise.internal", options=options).expect(2)
        assert "GET" not in server.said().errors


@pytest.fixture(params=["tap", "tun"])
def foreign(
    request: pytest.FixtureRequest, far: Namespace, guise: GuiseSide, leftovers: Leftovers
) -> Iterator[GuiseSide]:
    """A stack on a device that far has, to which it has no way but this."""
    far.ip("tuntap", "add", "own7", "mode", request.param, "vnet_hdr")
    side = GuiseSide(far, guise.run_dir, number=9, paths=0)
    far.ip("address", "add", f"{side.peer}/24", "dev", "own7")
    far.ip("link", "set", "own7", "up")
    side.options += ["--link", f"{request.param}:own7", "--ip", f"{side.address}/24"]
    yield side
    far.ip("link", "delete", "own7")


def test_it_is_off_on_a_link_that_guise_did_not_make(
    far: Namespace, foreign: GuiseSide, tmp_path: Path
) -> None:
    """And so are the host's name servers. Both are there for who asks for them."""
    ask = ["sh", "-c", "cat /etc/resolv.conf; curl -sS $0", url(HOST["127.0.0.1"], "small")]
    (tmp_path / "small").write_bytes(b"of the host")
    with (
        resolv_conf(far, "nameserver 127.0.0.53\n"),
        http_server(far, "127.0.0.1", tmp_path) as server,
    ):
        done = foreign.run(*ask).expect(7)
        assert "nameserver 127.0.0.53" in done.text and "169.254.77" not in done.text, done
        assert "(127.0.0.53) answer the host only" in done.errors, done
        foreign.run("getent", "hosts", "host.guise.internal").expect(2)
        assert "GET" not in server.said().errors
        done = foreign.run(*ask, options=["--localhost", "on"]).expect()
        assert "nameserver 169.254.77.11" in done.text and "of the host" in done.text, done
        assert "the host only" not in done.errors, done
        foreign.run(
            "getent", "hosts", "host.guise.internal", options=["--localhost", "on"]
        ).expect()


def test_connections_end_with_the_stack(far: Namespace, guise: GuiseSide) -> None:
    script = (
        "import socket, sys, time\n"
        "c = socket.create_connection(('169.254.77.1', int(sys.argv[1])), 30)\n"
        "c.sendall(b'x')\n"
        "print('sent', flush=True)\n"
        "time.sleep(600)\n"
    )
    with far.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with guise.start(PYTHON, "-c", script, str(server.getsockname()[1])) as client:
            peer, _ = server.accept()
            peer.settimeout(60)
            assert peer.recv(1) == b"x"
            client.stop()
        with suppress(ConnectionResetError):
            assert peer.recv(1) == b""
        peer.close()
    eventually(lambda: not far.processes("guise-holder"), "the holder has ended")
