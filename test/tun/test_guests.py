# SPDX-License-Identifier: GPL-2.0-only
"""Programs that cannot be preloaded, and any other with --mode tun: in a network namespace whose
only way out is the stack. What they see is compared with the host's own stack."""

from __future__ import annotations

import hashlib
import os
import re
import select
import socket
import subprocess
from pathlib import Path

import pytest
from topology.content import Content
from topology.ends import each_end_comes_by_itself
from topology.holders import wardens
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import eventually
from topology.side import BUILD, PYTHON, GuiseSide, HostSide, wait_until_says

JOINS = BUILD / "test" / "tun" / "joins"  # says whether it can


@pytest.fixture
def tun(far: Namespace, guise: GuiseSide) -> GuiseSide:
    """A stack that every program comes to by a tun."""
    return GuiseSide(far, guise.run_dir, "--mode", "tun")


def pattern(size: int) -> str:
    """What test/tun/web says of as many bytes."""
    whole = bytes(i % 251 for i in range(251)) * (size // 251 + 1)
    return f"{size} {hashlib.sha256(whole[:size]).hexdigest()}"


# ---- rights ----


def test_a_guest_has_no_right_to_join(guise: GuiseSide, tun: GuiseSide) -> None:
    """Who is in the stack's memory decides what every member does. A guest inherited the ticket,
    and joined by it."""
    member = guise.run("env", "GUISE_PRELOAD=off", JOINS).expect()
    assert "joined by descriptor" in member.text, member
    guest = tun.run(JOINS).expect()
    assert "lets it join" in guest.text, guest


# ---- static programs ----


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_static_program_talks_as_on_the_host(
    far: Namespace, host: HostSide, guise: GuiseSide, talk: Path, family: socket.AddressFamily
) -> None:
    """Without a word about modes: guise says which one, and why."""
    said = []
    for number, side in enumerate((host, guise)):
        with far.start(talk, "serve", str(7000 + number)) as server:
            wait_until_says(server, "listening")
            peer = side.of_family(family)[1]
            said.append(side.run(talk, "ask", peer, str(7000 + number), "a word").expect())
    on_host, on_guise = said
    assert on_guise.stdout == on_host.stdout == b"a word"
    sentence = "is statically linked; so it runs in a network namespace of its own"
    assert sentence in on_guise.errors and on_guise.errors.count("\n") == 1, on_guise


def test_a_static_server_is_asked_from_the_wire(
    far: Namespace, guise: GuiseSide, talk: Path
) -> None:
    """At the stack's address, without a published port, as a server that was preloaded."""
    for address in (guise.address, guise.address6):
        with guise.serve(talk, "serve", "80", says="listening") as server:
            assert far.run(talk, "ask", address, "80", "from far").expect().text == "from far"
            server.finish().expect()


def test_modes_are_what_they_say(guise: GuiseSide, talk: Path) -> None:
    with guise.start(talk, options=["--mode", "preload"]) as refused:
        said = refused.finish().expect(126)
    assert "is statically linked, so it cannot be preloaded; guise run --mode tun" in said.errors
    with guise.start(talk, options=["--mode", "tunnel"]) as refused:
        said = refused.finish().expect(2)
    assert '"tunnel" is none of preload, tun and auto' in said.errors
    # What can be preloaded is, unless another mode is asked for.
    show = ["sh", "-c", "echo $LD_PRELOAD; ls /sys/class/net /proc/self/ns > /dev/null"]
    assert "libguise-preload" in guise.run(*show).expect().text
    assert guise.run(*show, options=["--mode", "tun"]).expect().text == "\n"


def test_a_static_child_of_a_shell_is_caught(
    far: Namespace, tun: GuiseSide, talk: Path, leftovers: Leftovers
) -> None:
    with far.start(talk, "serve", "7000") as server:
        wait_until_says(server, "listening")
        line = f"{talk} ask {tun.peer} 7000 word | cat"
        assert tun.run("sh", "-c", line).expect().text == "word"


def test_busybox_loads_what_the_host_loads(
    host: HostSide, guise: GuiseSide, content: Content
) -> None:
    sums = []
    for side in (host, guise):
        url = f"http://{side.peer}:{content.port}/blob"
        done = side.run("/bin/busybox", "wget", "-q", "-O", "-", url).expect()
        sums.append(hashlib.sha256(done.stdout).hexdigest())
    assert sums == [content.sha256] * 2


def test_go_loads_stores_and_serves(far: Namespace, guise: GuiseSide, web: Path) -> None:
    with far.start(web, "serve", ":8000") as server:
        wait_until_says(server, "serving")
        for peer in (guise.peer, f"[{guise.peer6}]"):
            url = f"http://{peer}:8000"
            got = guise.run(web, "get", f"{url}/3000000", f"{url}/7").expect()
            assert got.text.splitlines() == [f"200 {pattern(3000000)}", f"200 {pattern(7)}"]
            put = guise.run(web, "put", f"{url}/", "3000000").expect()
            assert put.text.strip() == pattern(3000000)
    with guise.start(web, "serve", ":80", options=["-p", "8080:80"]) as server:
        wait_until_says(server, "serving")
        retry = ["curl", "-sS", "-i", "--retry-connrefused", "--retry", "50", "--retry-delay", "1"]
        done = far.run(*retry, "http://127.0.0.1:8080/100000").expect()
        assert b"X-Client: 169.254.77.2:" in done.stdout
        head, body = done.stdout.split(b"\r\n\r\n", 1)
        assert f"{len(body)} {hashlib.sha256(body).hexdigest()}" == pattern(100000), head
        # To the server, a client from the wire has its own address.
        done = far.run(*retry, f"http://{guise.address}/1").expect()
        assert f"X-Client: {guise.peer}:".encode() in done.stdout


# ---- what calls say ----

CONNECT = """
import errno, select, socket, sys
for address, port in zip(sys.argv[1::2], sys.argv[2::2]):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for blocking in (True, False):
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.setblocking(blocking)
            error = s.connect_ex((address, int(port)))
            if error == errno.EINPROGRESS:
                poll = select.poll()
                poll.register(s, select.POLLOUT)
                assert poll.poll(50000)
                error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            print(address, port, errno.errorcode.get(error, error))
"""


def forbid(far: Namespace, verdict: str) -> None:
    """far's firewall has something to say of a port."""
    far.run(
        "nft",
        "add table inet test; add chain inet test in { type filter hook input priority "
        f"0; }}; add rule inet test in tcp dport 99 {verdict}",
    ).expect()


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("reject with tcp reset", "ECONNREFUSED"),
        ("reject with icmpx host-unreachable", "EHOSTUNREACH"),
        ("reject with icmpx no-route", "ENETUNREACH"),
        ("drop", "ETIMEDOUT"),
    ],
)
def test_connect_fails_as_on_the_host(
    far: Namespace,
    host: HostSide,
    tun: GuiseSide,
    leftovers: Leftovers,
    verdict: str,
    expected: str,
) -> None:
    """Refused, unreachable and timed out come from the peer, not from the relay."""
    forbid(far, verdict)
    leftovers.look()
    host.near.run("sysctl", "-qw", "net.ipv4.tcp_syn_retries=1").expect()
    tun.options += ["--sysctl", "net.ipv4.tcp_syn_retries=1"]
    said = []
    for side in (host, tun):
        done = side.run(PYTHON, "-c", CONNECT, side.peer, "99", side.peer6, "99").expect()
        said.append([line.split()[1:] for line in done.text.splitlines()])
    assert said[0] == said[1] == [["99", expected]] * 4


def test_closed_ports_and_ways_that_are_not_there(host: HostSide, tun: GuiseSide) -> None:
    nowhere = ["203.0.113.1", "1", "2001:db8::1", "1"]
    for side in (host, tun):
        # The gateway of guise's tap has no way there, and says so; the host's own kernel knows.
        done = side.run(PYTHON, "-c", CONNECT, side.peer, "9", side.peer6, "9", *nowhere).expect()
        errors = [line.split()[2] for line in done.text.splitlines()]
        assert errors == ["ECONNREFUSED"] * 4 + ["ENETUNREACH"] * 4, done


def test_each_direction_ends_by_itself_and_a_reset_is_a_reset(
    far: Namespace, tun: GuiseSide
) -> None:
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        each_end_comes_by_itself(tun, tun.peer, server)


def test_urgent_data_is_urgent_in_its_place(far: Namespace, tun: GuiseSide) -> None:
    script = (
        "import socket, sys\n"
        "with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as c:\n"
        "    c.sendall(b'before')\n"
        "    c.send(b'!', socket.MSG_OOB)\n"
        "    c.sendall(b'after')\n"
        "    c.recv(1)\n"
    )
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        with tun.start(PYTHON, "-c", script, tun.peer, str(server.getsockname()[1])) as client:
            peer, _ = server.accept()
            peer.settimeout(60)
            urgent = select.poll()
            urgent.register(peer, select.POLLPRI)
            assert urgent.poll(60000)
            assert peer.recv(1, socket.MSG_OOB) == b"!"
            normal = b""
            while normal != b"beforeafter":
                got = peer.recv(100)
                assert got, normal
                normal += got
            peer.sendall(b"x")
            peer.close()
            client.finish().expect()


def test_a_reader_that_stands_still_stops_the_writer(far: Namespace, tun: GuiseSide) -> None:
    """Nothing is gathered on the way, except what sockets hold."""
    script = (
        "import socket, sys, select\n"
        "with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as c:\n"
        "    c.setblocking(False)\n"
        "    sent = 0\n"
        "    while select.select([], [c], [], 2)[1]:\n"
        "        sent += c.send(bytes(1 << 16))\n"
        "    print(sent, flush=True)\n"
        "    sys.stdin.readline()\n"
        "    c.setblocking(True)\n"
        "    c.sendall(b'end')\n"
    )
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        words = [PYTHON, "-c", script, tun.peer, str(server.getsockname()[1])]
        with tun.start(*words, stdin=subprocess.PIPE) as client:
            peer, _ = server.accept()
            peer.settimeout(60)
            eventually(lambda: client.said().text, "the writer stands still")
            sent = int(client.said().text)
            assert 100_000 < sent < 64 << 20
            assert client.stdin
            client.stdin.write(b"go on\n")
            client.stdin.flush()
            got = b"".join(iter(lambda: peer.recv(1 << 20), b""))
            assert len(got) == sent + 3 and got.endswith(b"end")
            client.finish().expect()


VANISH = """
import socket, sys
if sys.argv[1] == "ask":
    c = socket.create_connection((sys.argv[2], int(sys.argv[3])), 30)
else:
    with socket.create_server(("", 80)) as server:
        print("listening", flush=True)
        c, _ = server.accept()
c.settimeout(None)
c.sendall(b"here")
print("connected", flush=True)
try:
    print(c.recv(1))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("role", ["ask", "serve"])
def test_a_peer_that_vanishes_is_noticed_by_the_stacks_keepalives(
    far: Namespace, tun: GuiseSide, role: str
) -> None:
    """The program did not request keepalives; and if it did, the stack would not learn of it."""
    for key, value in (("time", 1), ("intvl", 1), ("probes", 2)):
        tun.options += ["--sysctl", f"net.ipv4.tcp_keepalive_{key}={value}"]
    with far.socket() as server, far.socket() as client:
        server.bind(("0.0.0.0", 0))
        server.listen()
        port = str(server.getsockname()[1])
        with tun.start(PYTHON, "-c", VANISH, role, tun.peer, port) as program:
            if role == "ask":
                peer, _ = server.accept()
            else:
                wait_until_says(program, "listening")
                client.connect((tun.address, 80))
                peer = client
            with peer:
                peer.settimeout(60)
                assert peer.recv(4, socket.MSG_WAITALL) == b"here"
                wait_until_says(program, "connected")
                drop = "type filter hook output priority 0; policy drop;"
                far.run("nft", f"add table inet v; add chain inet v out {{ {drop} }}").expect()
                assert program.finish().expect().text.split()[-1] == "ConnectionResetError"
                far.run("nft", "delete table inet v").expect()


MANY = """
import selectors, socket, sys
at, wanted = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
ready = selectors.DefaultSelector()
for i in range(wanted):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(at)
    ready.register(s, selectors.EVENT_WRITE, i)
answers, connected = 0, []
while answers < wanted:
    events = ready.select(50)
    assert events, (answers, len(connected))
    for key, _ in events:
        s = key.fileobj
        if key.events == selectors.EVENT_WRITE:
            error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            assert not error, error
            ready.modify(s, selectors.EVENT_READ, key.data)
            connected.append((s, key.data))
            if len(connected) == wanted:  # all of them are there at once
                for other, number in connected:
                    other.send(b"%8d" % number)
        else:
            assert int(s.recv(8, socket.MSG_WAITALL)) == key.data
            ready.unregister(s)
            answers += 1
print(answers)
"""

ECHO = """
import asyncio, sys
async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(echo, sys.argv[1], int(sys.argv[2]), backlog=2000)
    print("serving", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def test_a_thousand_connections_at_once(far: Namespace, tun: GuiseSide) -> None:
    line = f"ulimit -n 4096; exec {PYTHON} -c '{ECHO}' 0.0.0.0 7000"
    with far.start("sh", "-c", line) as server:
        wait_until_says(server, "serving")
        line = f"ulimit -n 4096; exec {PYTHON} -c '{MANY}' {tun.peer} 7000 1000"
        assert tun.run("sh", "-c", line, seconds=120).expect().text == "1000\n"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_datagrams_go_and_come(
    far: Namespace, host: HostSide, tun: GuiseSide, family: socket.AddressFamily
) -> None:
    """Small, large, unwanted ones, and one that comes first."""
    script = (
        "import socket, sys\n"
        "family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET\n"
        "with socket.socket(family, socket.SOCK_DGRAM) as s:\n"
        "    s.settimeout(30)\n"
        "    s.bind(('', 5353))\n"
        "    for size in (0, 1, 1400, 20000):\n"
        "        s.sendto(bytes(size), (sys.argv[1], int(sys.argv[2])))\n"
        "        data, peer = s.recvfrom(65536)\n"
        "        assert peer[:2] == (sys.argv[1], int(sys.argv[2])), peer\n"
        "        print(len(data))\n"
        "    print('ready', flush=True)\n"
        "    data, peer = s.recvfrom(100)\n"
        "    print(data, peer[0] == sys.argv[1])\n"
        "    s.sendto(data, peer)\n"
        "    s.connect((sys.argv[1], 9))\n"
        "    s.send(b'x')\n"
        "    try:\n"
        "        s.recv(1)\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    said = []
    for side in (host, tun):
        own, peer = side.of_family(family)
        with far.socket(family, socket.SOCK_DGRAM) as server:
            server.bind(("", 0))
            port = str(server.getsockname()[1])
            with side.start(PYTHON, "-c", script, peer, port) as client:
                for _ in range(4):
                    data, asker = server.recvfrom(65536)
                    assert asker[:2] == (own, 5353)
                    server.sendto(data, asker)
                wait_until_says(client, "ready")
                with far.socket(family, socket.SOCK_DGRAM) as stranger:
                    stranger.sendto(b"first", (own, 5353))
                    assert stranger.recvfrom(100)[1][:2] == (own, 5353)
                said.append(client.finish().expect().text)
    assert said[0] == said[1]


@pytest.mark.parametrize("words", [["-c1"], ["-c1", "-s", "4000"]], ids=["small", "in fragments"])
def test_ping_answers(tun: GuiseSide, words: list[str]) -> None:
    for peer in (tun.peer, tun.peer6):
        tun.run("ping", *words, "-W30", peer).expect()


# ---- names and the host ----


def test_names_and_the_hosts_localhost(far: Namespace, tun: GuiseSide, web: Path) -> None:
    """By Go's own resolver, which reads files and asks servers itself."""
    with far.start(web, "serve", "127.0.0.1:8000") as server:
        wait_until_says(server, "serving")
        for name in ("host.guise.internal", "169.254.77.1"):
            got = tun.run(web, "get", f"http://{name}:8000/1000").expect()
            assert got.text.strip() == f"200 {pattern(1000)}"
    hosts = tun.run("cat", "/etc/hosts").expect().text
    assert hosts.startswith(Path("/etc/hosts").read_text(encoding="utf-8"))
    seen = tun.run("cat", "/etc/resolv.conf", options=["--dns", "192.0.2.53"]).expect().text
    assert "nameserver 169.254.77.11\n" in seen
    # Only the program has them.
    assert "guise" not in Path("/etc/hosts").read_text(encoding="utf-8")


# ---- whose TCP it is ----


@pytest.mark.parametrize(
    ("flags", "sign", "is_there"),
    [
        ([], "Flags [S]", True),
        (["--cc", "dctcp"], "Flags [SEW]", True),
        (["--sysctl", "net.ipv4.tcp_timestamps=0"], "TS val", False),
        (["--mptcp"], "mptcp", True),
    ],
    ids=["as it is", "congestion control", "sysctl", "mptcp"],
)
def test_the_connection_on_the_wire_is_the_stacks(
    far: Namespace, tun: GuiseSide, content: Content, flags: list[str], sign: str, is_there: bool
) -> None:
    """Its congestion control (dctcp asks for ECN), its sysctls, its Multipath TCP."""
    syn = f"tcp[tcpflags] & tcp-syn != 0 and src host {tun.address}"
    with far.start("tcpdump", "-Uni", "any", "-c", "1", syn) as capture:
        wait_until_says(capture, "listening on")
        url = f"http://{tun.peer}:{content.port}/blob"
        tun.options += flags
        done = tun.run("curl", "-sS", url)
        assert hashlib.sha256(done.expect().stdout).hexdigest() == content.sha256
        assert (sign in capture.finish().text) is is_there


@pytest.mark.slow
def test_200_mb_are_whole_both_ways(far: Namespace, guise: GuiseSide, web: Path) -> None:
    size = 200_000_000
    with far.start(web, "serve", ":8000") as server:
        wait_until_says(server, "serving")
        url = f"http://{guise.peer}:8000/"
        got = guise.run(web, "get", f"{url}{size}", seconds=300).expect()
        assert got.text.strip() == f"200 {pattern(size)}"
        put = guise.run(web, "put", url, str(size), seconds=300).expect()
        assert put.text.strip() == pattern(size)


# ---- their end ----


def test_what_was_sent_last_is_delivered(far: Namespace, tun: GuiseSide) -> None:
    """The program is gone before its data are; a datagram is not lost, either."""
    script = (
        "import os, socket, sys\n"
        "c = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)\n"
        "c.sendall(bytes(1000000))\n"
        "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "u.sendto(b'last', (sys.argv[1], int(sys.argv[3])))\n"
        "os._exit(0)\n"
    )
    with far.socket() as server, far.socket(kind=socket.SOCK_DGRAM) as log:
        for s in (server, log):
            s.bind(("0.0.0.0", 0))
        server.listen()
        ports = [str(s.getsockname()[1]) for s in (server, log)]
        with tun.start(PYTHON, "-c", script, tun.peer, *ports) as client:
            peer, _ = server.accept()
            peer.settimeout(60)
            client.finish().expect()
            assert len(b"".join(iter(lambda: peer.recv(65536), b""))) == 1000000
            assert log.recv(100) == b"last"


def test_a_daemon_that_closes_everything_keeps_its_stack(
    far: Namespace, tun: GuiseSide, leftovers: Leftovers
) -> None:
    """The ticket as well, so that only the namespace shows that a guest is there."""
    daemon = (
        "import os, socket, sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "os.closerange(0, 4096)\n"
        "for i in range(2):\n"
        "    c = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)\n"
        "    c.sendall(b'daemon')\n"
        "    c.recv(1)\n"
    )
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        words = [PYTHON, "-c", daemon, tun.peer, str(server.getsockname()[1])]
        with tun.start(*words) as client:
            client.finish().expect()
            for _ in range(2):
                peer, _ = server.accept()
                peer.settimeout(60)
                assert peer.recv(6) == b"daemon"
                assert far.processes("guise-holder")
                peer.close()
    leftovers.wait_until_none()


def test_without_its_holder_nothing_gets_out(far: Namespace, tun: GuiseSide) -> None:
    script = (
        "import socket, sys\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "s = socket.socket()\n"
        "s.settimeout(3)\n"
        "try:\n"
        "    s.connect((sys.argv[1], int(sys.argv[2])))\n"
        "    print('connected')\n"
        "except OSError as error:\n"
        "    print('failed')\n"
    )
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        words = [PYTHON, "-c", script, tun.peer, str(server.getsockname()[1])]
        with tun.start(*words, stdin=subprocess.PIPE) as client:
            wait_until_says(client, "ready")
            (holder,) = wardens(far)
            os.kill(holder, 9)
            eventually(lambda: not far.processes("guise-holder"), "the holder is gone")
            assert client.stdin
            client.stdin.write(b"go\n")
            client.stdin.flush()
            assert client.finish().text.split() == ["ready", "failed"]
    # What it should have undone, the next command does, when the host has buried it.
    tun.run("true").expect()
    eventually(
        lambda: tun.call("ls").expect() and not list(tun.run_dir.glob(f"{holder}.sock")),
        "its socket is removed",
    )


def test_status_signals_and_errors_are_the_programs(tun: GuiseSide, tmp_path: Path) -> None:
    for verbose in ([], ["-v"]):
        for line, status in (("exit 7", 7), ("kill -TERM $$", 143)):
            with tun.start("sh", "-c", line, options=verbose) as program:
                program.finish().expect(status)
    script = tmp_path / "script"
    script.write_text("echo a script without an interpreter: $0 $1\n", encoding="ascii")
    script.chmod(0o755)
    with tun.start(script, "x") as program:
        assert program.finish().expect().text.endswith(f"interpreter: {script} x\n")
    script.write_text("#!/no/such/interpreter\n", encoding="ascii")
    with tun.start(script) as program:
        said = program.finish().expect(127)
    assert "guise: cannot execute" in said.errors
    with tun.start("pwd", cwd=tmp_path) as program:
        assert program.finish().expect().text.strip() == str(tmp_path)


def test_print_config_shows_the_mode(tun: GuiseSide) -> None:
    with tun.start("true", options=["--print-config"]) as program:
        text = program.finish().expect().text
    assert re.search(r"^mode +tun +# --mode$", text, re.M), text
    assert re.search(r"^link guest0 tun fd=\d+ mtu=1500$", text, re.M), text
    assert re.search(r"^guests guest0 fd=\d+ ", text, re.M), text
