# SPDX-License-Identifier: GPL-2.0-only
"""Uplinks of a user without root: what root sets up once, and what the user then has and has not
(internal/uplink/opener)."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from topology.granted import INSTALLED, Granted
from topology.namespace import Namespace, Word
from topology.private import Machine, as_user
from topology.process import Process, eventually
from topology.shared import MODEM, MODEM6, modem
from topology.side import GUISE, PYTHON, program, wait_until_says
from topology.uplinks import (
    FAULTS,
    PORT,
    SEND,
    SERVER,
    SERVER6,
    Transfer,
    Uplinks,
    goes_on,
    uses_both,
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="the host's kernel has no MPTCP"
)

ALICE, BOB = (500_000 + 2 * (os.getpid() % 100_000) + i for i in range(2))
BOTH = ("--uplink", "up1", "--uplink", "up2")

# Answers with as many bytes as the path says, by Multipath TCP.
SERVE = """
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", self.path[1:])
        self.end_headers()
        self.wfile.write(b"x" * int(self.path[1:]))
class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("0.0.0.0", 8000), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        self.server_bind()
        self.server_activate()
        print("ready", flush=True)
Server().serve_forever()
"""


@pytest.fixture
def granted(far: Namespace, run_dir: Path) -> Iterator[Granted]:
    with Machine(far, route=False) as machine:
        if machine.run(*as_user(ALICE, "test", "-x", GUISE)).status:
            pytest.skip(f"{GUISE} lies where only root may go")
        with Granted(machine, run_dir, ALICE) as granted:
            yield granted


@pytest.fixture
def served(granted: Granted) -> Iterator[Granted]:
    """Set up, with the service; all that it changed on the host is as before when the stacks have
    ended."""
    granted.setup(*BOTH).expect()
    before = granted.host()
    with granted.service() as service:
        yield granted
        eventually(lambda: not granted.far.processes("guise-holder"), "the holder has ended")
        eventually(lambda: granted.host() == before, f"nothing is left of\n{before}")
        assert service.running(), service.said()
        service.signal(signal.SIGTERM)
        assert not service.finish().expect().errors
    assert granted.host() == before


# Says whether it calls the stack directly, and what it gets; again for each line that it is given.
# A connection that is about to be made while its path is replaced may be aborted: then it is tried
# again.
FETCH = """
import sys, urllib.request
direct = "/memfd:guise " in open("/proc/self/maps").read()
def fetch():
    while True:
        try:
            return len(urllib.request.urlopen(sys.argv[1]).read())
        except ConnectionAbortedError as error:
            print(error, file=sys.stderr)
        except urllib.error.URLError as error:
            print(error.reason, file=sys.stderr)
for n, _ in enumerate(sys.stdin, 1):
    print(n, direct, fetch(), flush=True)
"""


def fetch(running: Process, number: int) -> None:
    assert running.stdin
    running.stdin.write(b"again\n")
    running.stdin.flush()
    wait_until_says(running, f"{number} True 3000000")


@pytest.mark.parametrize("whose", ["nobody", "root"])
def test_a_user_for_whom_root_starts_a_stack_gets_no_packet_socket(
    granted: Granted, whose: str
) -> None:
    """By one anything can be sent, on any interface of the host. A stack of root's own has some."""
    of = pwd.getpwnam(whose)
    drop = [f"--reuid={of.pw_uid}", f"--regid={of.pw_gid}", "--init-groups"]
    program = ["setpriv", *drop, PYTHON, "-c", FETCH, f"http://{SERVER}:8000/3000000"]
    words: list[Word] = [GUISE, "run", "--user", whose, "--mptcp", *BOTH, "--", *program]
    before = granted.host()
    with granted.server.start(PYTHON, "-c", SERVE) as server:
        wait_until_says(server, "ready")
        with granted.machine.start(*words, stdin=subprocess.PIPE) as running:
            fetch(running, 1)
            sockets = granted.machine.run("ss", "-0", "-p").expect().text
            assert ("guise" in sockets or "python" in sockets) == (whose == "root"), sockets
            first = granted.followers()
            os.kill(first[0], signal.SIGKILL)
            eventually(lambda: granted.followers() not in ([], first), "another one follows")
            fetch(running, 2)
            running.stop()
    eventually(lambda: granted.host() == before, "nothing is left")


def test_a_user_downloads_over_both(served: Granted) -> None:
    """curl, which knows nothing of it; each path carries a part that it cannot have carried by
    itself in vain."""
    size = 8 << 20
    for path in 1, 2:
        served.server.run(
            "tc", "qdisc", "add", "dev", f"s{path}", "root",
            "tbf", "rate", "50mbit", "burst", "32k", "latency", "50ms",
        ).expect()  # fmt: skip
    served.server.run("ip", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
    before = carried(served)
    with served.server.start(PYTHON, "-c", SERVE) as server:
        wait_until_says(server, "ready")
        done = served.run(
            "curl",
            "-sS",
            f"http://{SERVER}:8000/{size}",
            "-o",
            "/dev/null",
            "-w",
            "%{size_download}",
        )
        assert done.expect().text == str(size)
    parts = [after - earlier for after, earlier in zip(carried(served), before, strict=True)]
    assert all(part > size // 10 for part in parts), parts
    assert sum(parts) < size * 3 // 2, parts


def carried(u: Uplinks) -> list[int]:
    """The bytes that the server has sent by each cable."""
    links = json.loads(u.server.run("ip", "-s", "-j", "link").expect().text)
    return [
        link["stats64"]["tx"]["bytes"]
        for name in ("s1", "s2")
        for link in links
        if link["ifname"] == name
    ]


@pytest.mark.parametrize("address", [SERVER, SERVER6])
def test_a_users_connection_uses_both(served: Granted, address: str) -> None:
    uses_both(served, address)


@pytest.mark.parametrize("address", [f"{MODEM}.2", f"{MODEM6}:2"])
def test_a_users_uplink_may_be_a_modem(granted: Granted, address: str) -> None:
    """An interface whose packets have no Ethernet header."""
    granted.setup("--uplink", "rmnet0", "--uplink", "up1").expect()
    with granted.service(), modem(granted.far, granted.server):
        before = granted.host()
        with Transfer(granted, address, "rmnet0", "up1") as client:
            assert granted.states() == {"rmnet0": "usable", "up1": "usable"}
            goes_on(client)
            ping = granted.user(
                GUISE, "exec", str(granted.stack()["stack"]), "--",
                "ping", "-c3", "-i0.1", "-W30", address,
            )  # fmt: skip
            assert " 0% packet loss" in ping.text, ping
        eventually(lambda: not granted.far.processes("guise-holder"), "the holder has ended")
        eventually(lambda: granted.host() == before, "nothing is left")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_users_path_is_lost_and_comes_back(
    served: Granted, fault: Callable[[Uplinks], Callable[[], None]]
) -> None:
    with Transfer(served) as client:
        eventually(lambda: len(served.subflows()) == 2, "a subflow on each path")
        mend = fault(served)
        served.wait_until(up1="lost", up2="usable")
        goes_on(client)
        mend()
        served.wait_until(up1="usable", up2="usable")
        eventually(lambda: len(served.subflows()) == 2, "a subflow on each path again")
        goes_on(client)


def test_the_host_keeps_its_own_connections_beside_a_users(served: Granted) -> None:
    with (
        Transfer(served) as client,
        served.far.start(*SEND, SERVER, PORT, stdin=subprocess.PIPE) as own,
    ):
        goes_on(own)
        goes_on(client)
        ping = served.far.run("ping", "-c3", "-i0.1", "-W30", "10.88.1.1").expect()
        assert " 0% packet loss" in ping.text
        goes_on(own)
        goes_on(client)


def test_a_user_has_several_stacks_beside_each_other_and_beside_roots(served: Granted) -> None:
    with contextlib.ExitStack() as all_of_them:
        all_of_them.enter_context(served.serve())
        clients = [
            all_of_them.enter_context(served.start(*SEND, SERVER, PORT, stdin=subprocess.PIPE))
            for _ in range(3)
        ]
        root = served.machine.start(*served.words(*SEND, SERVER, PORT), stdin=subprocess.PIPE)
        clients.append(all_of_them.enter_context(root))
        for client in clients:
            goes_on(client)
        for client in clients:  # each goes on while the others end
            goes_on(client)
            assert client.stdin
            client.stdin.close()
            assert client.finish().expect().text.splitlines()[-1] == "right"


@pytest.mark.parametrize("which", ["follower", "all"])
def test_a_users_stack_that_is_killed_leaves_nothing(served: Granted, which: str) -> None:
    with served.serve(), served.start(*SEND, SERVER, PORT, stdin=subprocess.PIPE) as client:
        goes_on(client)
        assert served.reserved()
        of_user = [pid for pid in served.followers() if os.stat(f"/proc/{pid}").st_uid == ALICE]
        assert len(of_user) == 1
        if which == "all":
            of_user += [*served.far.processes("guise-holder"), client.pid]
        for pid in of_user:
            os.kill(pid, signal.SIGKILL)
        if which == "follower":
            served.wait_until(up1="usable", up2="usable")
            goes_on(client)
            eventually(lambda: len(served.subflows()) == 2, "both paths again")
    # The fixture sees that nothing is left.


def test_what_a_killed_service_leaves_the_next_one_undoes(granted: Granted) -> None:
    granted.setup(*BOTH).expect()
    before = granted.host()
    with granted.service() as service, granted.serve():
        with granted.start(*SEND, SERVER, PORT, stdin=subprocess.PIPE) as client:
            goes_on(client)
            os.kill(service.pid, signal.SIGKILL)
            eventually(
                lambda: "the service that opens uplinks for you has ended" in client.said().errors,
                "the user is told",
            )
            # Nothing hides packets from the host any more.
            assert "table" not in granted.machine.shell("nft list ruleset")
        eventually(lambda: not granted.far.processes("guise-holder"), "the holder has ended")
        assert granted.reserved()
    granted.machine.shell(f"rm {granted.socket}")
    stay = as_user(ALICE, PYTHON, program("opener.py"), granted.socket, "stay", "up1")
    with (
        granted.service() as service,
        granted.machine.start(*stay, stdin=subprocess.PIPE) as client,
    ):
        wait_until_says(client, "stays")
        os.kill(service.pid, signal.SIGKILL)
        client.stop()
        assert "guise-p" in granted.host()
    granted.machine.shell(f"rm {granted.socket}")
    with granted.service():
        eventually(lambda: granted.host() == before, "the next one has undone it")


def test_what_is_set_up_is_listed_changed_and_undone(granted: Granted) -> None:
    machine = granted.machine
    refused = granted.run("true")
    assert "sudo guise setup --uplink up1" in refused.expect(2).errors
    doctor = granted.guise("doctor").text
    assert "sudo guise setup --uplink" in doctor
    before = machine.state()
    dry = granted.setup("--dry-run", *BOTH).expect()
    assert "SocketMode=0600" in dry.text
    assert machine.state() == before
    first = granted.setup(*BOTH).expect()
    assert "+ uplink up1" in first.text
    assert granted.unit("socket", "SocketMode") == "0600"
    assert granted.unit("socket", "SocketUser") == str(ALICE)
    after = machine.state()
    second = granted.setup(*BOTH).expect()
    assert "= uplink up1" in second.text
    assert "+ " not in second.text
    assert machine.state() == after
    assert "does not run" in granted.guise("doctor").text
    with granted.service():
        assert "up1 and up2" in granted.guise("doctor").text
        # Not the ones that root did not name, nor another way.
        assert (
            "is not among the interfaces"
            in granted.user(GUISE, "run", "--uplink", "cable", "--", "true").expect(2).errors
        )
        assert (
            "takes root"
            in granted.user(GUISE, "run", "--uplink", "up1,exclusive", "--", "true")
            .expect(2)
            .errors
        )
        # Another user has none of it.
        other = machine.run(*as_user(BOB, *granted.words("true")))
        assert "sudo guise setup" in other.expect(2).errors
    absent = granted.setup("--uplink", "usb7").expect()
    assert "no interface usb7 at the moment" in absent.text
    part = granted.setup("--undo", "--uplink", "up2").expect()
    assert "- uplink up2" in part.text
    assert "up2" not in machine.shell("cat /etc/guise/uplinks")
    assert "systemctl" in part.text
    granted.setup("--undo").expect()
    assert machine.state() == before
    assert "nothing is set up" in granted.setup("--undo").expect().text


def test_without_systemd_an_init_script_runs_the_service(granted: Granted) -> None:
    granted.machine.shell(
        "rm -r /run/systemd; mkdir -p /etc/init.d; ln -s /bin/true /run/bin/update-rc.d"
    )
    before = granted.host()
    granted.setup(*BOTH).expect()
    try:
        eventually(lambda: "up1 and up2" in granted.guise("doctor").text, "the service runs")
        # A second one for a further interface; the first goes on.
        granted.setup("--uplink", "cable").expect()
        with Transfer(granted) as client:
            eventually(lambda: len(granted.subflows()) == 2, "both paths")
            goes_on(client)
        eventually(lambda: not granted.far.processes("guise-holder"), "the holder has ended")
        eventually(lambda: granted.host() == before, "nothing is left")
    finally:
        granted.setup("--undo").expect()
    assert not granted.far.processes("guise")
    assert granted.machine.run("ls", "/run/guise-uplink", "/etc/init.d/guise-uplink").status
    assert granted.host() == before


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_the_units_are_what_systemd_expects(granted: Granted) -> None:
    granted.setup(*BOTH).expect()
    for kind in "socket", "service":
        unit = f"/etc/systemd/system/guise-uplink-{ALICE}.{kind}"
        done = granted.machine.run("systemd-analyze", "verify", unit).expect()
        assert "guise" not in done.text + done.errors, done


def test_what_cannot_be_set_up_is_refused(granted: Granted) -> None:
    before = granted.machine.state()
    for flags, said in {
        ("--uplink", "a/b"): "cannot be the name of a network interface",
        ("--uplink", ""): "cannot be the name of a network interface",
        ("--uplink", "lo"): "leads to no network",
        ("--uplink", "up1,exclusive"): "takes root",
    }.items():
        assert said in granted.setup(*flags).expect(2).errors
    nobody = granted.machine.run(INSTALLED, "setup", "--user", "nobodyatall", "--uplink", "up1")
    assert "no such user" in nobody.expect(2).errors
    root = granted.machine.run(INSTALLED, "setup", "--user", "0", "--uplink", "up1")
    assert "root needs nothing set up" in root.expect(2).errors
    # Root must not run what a user could change.
    for name, change in {
        "mine": f"mkdir /run/mine; chown {BOB} /run/mine",
        "open": "mkdir /run/open; chmod 777 /run/open",
        "file": "mkdir /run/file",
    }.items():
        granted.machine.shell(f"{change}; install -m 755 {INSTALLED} /run/{name}/guise")
        if name == "file":
            granted.machine.shell(f"chown {BOB} /run/file/guise")
        theirs = granted.machine.run(f"/run/{name}/guise", "setup", "--user", str(ALICE), *BOTH)
        assert "sudo make install" in theirs.expect(2).errors
    assert granted.machine.state() == before


def requests(granted: Granted, *words: str, uid: int = ALICE) -> list[str]:
    done = granted.machine.run(
        *as_user(uid, PYTHON, program("opener.py"), granted.socket, "say", *words)
    )
    return done.expect().text.splitlines()


def test_only_its_user_reaches_a_service(served: Granted) -> None:
    other = as_user(BOB, PYTHON, program("opener.py"), served.socket, "say", "1 ports")
    assert "PermissionError" in served.machine.run(*other).expect(1).errors
    # Nor does the mode of the socket decide that alone.
    served.machine.shell(f"chmod 666 {served.socket}")
    assert requests(served, "1 ports", uid=BOB) == ["ended"]
    assert requests(served, "1 ports", uid=0) == ["ended"]
    assert requests(served, "1 ports")[0].startswith("1 ok ")


def test_a_user_gets_no_more_than_was_set_up(served: Granted) -> None:
    assert requests(served, "1 open up1") == ["1 no expected a request for ports first"]
    answers = requests(
        served, "1 ports", "2 open cable", "3 open lo", "4 open nix", "5 open ../up1",
        "6 addresses up1 10.88.1.2", "7 ports", "8 open up1",
    )  # fmt: skip
    assert [answer.split()[:2] for answer in answers] == [
        ["1", "ok"], *([str(n), "no"] for n in range(2, 8)), ["8", "ok"],
    ]  # fmt: skip
    assert "may not use cable" in answers[1]
    assert answers[7].endswith("and a descriptor")
    # Root takes it back: from then on it is not opened any more.
    served.machine.shell("sed -i s/up1/up9/ /etc/guise/uplinks")
    assert "may not use up1" in requests(served, "1 ports", "2 open up1")[1]
    # A file that others could have written allows nothing.
    served.machine.shell(f"sed -i s/up9/up1/ /etc/guise/uplinks; chown {ALICE} /etc/guise/uplinks")
    assert "does not count" in requests(served, "1 ports", "2 open up1")[1]


def test_a_user_gets_no_ports_of_others(served: Granted) -> None:
    with served.machine.start("socat", "-d", "-d", "TCP-LISTEN:61005", "EXEC:true") as server:
        wait_until_says(server, "listening on")
        for ports, said in {
            "1-1023": "ports below 1024",
            "1000-1100": "ports below 1024",
            "61000-61099": "in use by",
            "2000-30000": "at most 16384 ports",
            "0": "no list of ports",
            "70000": "no list of ports",
            "61000-61099,x": "no list of ports",
        }.items():
            [answer] = requests(served, f"1 ports {ports}")
            assert answer.startswith("1 no ") and said in answer, answer
    # What root has reserved for something else, and what another stack has.
    served.machine.shell("sysctl -qw net.ipv4.ip_local_reserved_ports=62000-62010")
    assert "are reserved" in requests(served, "1 ports 62005-62100")[0]
    served.machine.shell("sysctl -qw net.ipv4.ip_unprivileged_port_start=2000")
    assert "below 2000" in requests(served, "1 ports 1500-1600")[0]
    served.machine.shell("sysctl -qw net.ipv4.ip_unprivileged_port_start=1024")
    hold = as_user(ALICE, PYTHON, program("opener.py"), served.socket, "hold", "up1", "10.88.1.2")
    with served.machine.start(*hold, stdin=subprocess.PIPE) as first:
        wait_until_says(first, "3 ok")
        theirs = first.said().text.split()[2]
        assert "1 no" in requests(served, f"1 ports {theirs}")[0]
        assert served.machine.shell("nft list ruleset").count("guise_uplink") == 1
    served.machine.shell("sysctl -qw net.ipv4.ip_local_reserved_ports=")


def test_addresses_are_those_of_the_host(served: Granted) -> None:
    """Another's address is never the stack's, and one that the host loses is no longer."""
    hold = as_user(
        ALICE, PYTHON, program("opener.py"), served.socket, "hold", "up1",
        "10.88.1.2", "10.88.1.99", "10.88.2.2", "127.0.0.1",
    )  # fmt: skip
    with served.machine.start(*hold, stdin=subprocess.PIPE) as client:
        wait_until_says(client, "3 ok")

        def table() -> str:
            return served.machine.shell("nft list ruleset")

        assert "10.88.1.2" in table()
        for other in "10.88.1.99", "10.88.2.2", "127.0.0.1":
            assert other not in table()
        served.far.ip("address", "add", "10.88.1.99/24", "dev", "up1")
        eventually(lambda: "10.88.1.99" in table(), "the host has it now")
        served.far.ip("address", "delete", "10.88.1.99/24", "dev", "up1")
        eventually(lambda: "10.88.1.99" not in table(), "the host has lost it")


def test_what_makes_no_sense_ends_the_connection_or_is_refused(served: Granted) -> None:
    for noise in (
        "",
        "ports",
        "x ports",
        "0 ports",
        "-1 ports",
        "1 ports\\n",
        "\\x00\\xff",
        "1" * 9000,
    ):
        [answer] = requests(served, noise)
        assert answer == "ended", (noise, answer)
    for refused in (
        "1 ",
        "1 dance",
        "1 dance up1",
        "1 open",
        "1 open up1 up2",
        "1 close",
        "1 addresses",
        "1 ports a b",
    ):
        [answer] = requests(served, refused)
        assert answer.startswith("1 no "), (refused, answer)
    [_, *answers] = requests(
        served, "1 ports", "2 open up1", "3 addresses up1 nonsense", "4 addresses up1 fe80::1%up1",
        "5 addresses up1 " + " ".join(["10.88.1.2"] * 65), "6 close up1", "7 close up1",
        "8 addresses up1",
    )  # fmt: skip
    assert [answer.split()[1] for answer in answers] == ["ok", "no", "no", "no", "ok", "ok", "no"]


def test_a_hundred_connections_starve_nobody_and_take_no_more_than_is_a_users(
    served: Granted,
) -> None:
    """A user harms himself by that, and only as long as they last."""
    many = as_user(ALICE, PYTHON, program("opener.py"), served.socket, "many", "100")
    answers = served.machine.run(*many).expect().text.splitlines()
    assert len(answers) == 100
    got = [answer for answer in answers if answer.startswith("1 ok")]
    assert 1 <= len(got) <= 8, answers
    silent = as_user(ALICE, PYTHON, program("opener.py"), served.socket, "silent")
    with served.machine.start(*silent) as quiet:
        assert requests(served, "1 ports")[0].startswith("1 ok")
        assert "ended" in quiet.finish().expect().text  # it is given up after a while


@pytest.mark.slow
def test_a_service_that_systemd_started_ends_when_nobody_needs_it(granted: Granted) -> None:
    granted.setup(*BOTH).expect()
    with granted.service() as service:
        assert requests(granted, "1 ports")[0].startswith("1 ok")
        assert not service.finish(100).expect().errors


def test_the_service_has_few_rights(served: Granted) -> None:
    requests(served, "1 ports")
    [service] = [
        pid
        for pid in served.far.processes("guise")
        if b"serve-uplinks" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    for task in Path(f"/proc/{service}/task").iterdir():
        status = dict(
            line.split(":\t", 1)
            for line in (task / "status").read_text(encoding="ascii").splitlines()
            if ":\t" in line
        )
        net_admin, bpf = 1 << 12, 1 << 39
        for which in "CapEff", "CapPrm", "CapBnd":
            assert int(status[which], 16) == net_admin | bpf, (task, which, status[which])
        for which in "CapInh", "CapAmb":
            assert not int(status[which], 16)
        assert status["NoNewPrivs"].strip() == "1"
    # Its user can neither end, nor stop, nor look into it.
    for command in (
        ["kill", "-STOP", str(service)],
        ["ls", f"/proc/{service}/fd"],
        ["prlimit", f"--pid={service}", "--nofile=5"],
    ):
        assert served.user(*command).status
