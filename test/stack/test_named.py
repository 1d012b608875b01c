# SPDX-License-Identifier: GPL-2.0-only
"""Named stacks: up, run --stack, exec, upgrade, down."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.holders import carrier_of
from topology.named import ALONE, OWN_ADDRESS, SERVE, Named
from topology.process import Finished, Process, eventually, run
from topology.side import GUISE, PYTHON, wait_until_says
from topology.user import User

CC = "import socket; s = socket.socket(); print(s.getsockopt(6, 13, 16).rstrip(b'\\0').decode())"


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Named]:
    named = Named(tmp_path)
    yield named
    for stack in named.ls():
        if not stack.isdigit():  # that of a run goes by itself, a moment after its program
            named.call("down", stack).expect()
    eventually(lambda: not named.run_dir.exists(), "nothing is left")


def test_up_run_exec_down(named: Named) -> None:
    named.up('cc = "westwood"\n' + ALONE)
    assert list(named.ls()) == ["web"] and named.ls()["web"]["members"] == 0
    assert named.python("web", CC) == "westwood\n"
    with named.serve():
        assert named.ls()["web"]["members"] == 1
        assert "127.0.0.1:4000" in named.on("web", "ss", "-Htln").expect().text
    eventually(lambda: named.ls()["web"]["members"] == 0, "the program has left")
    named.call("down", "web").expect()
    assert named.ls() == {}


def test_it_stays_without_programs_and_with_what_they_set(named: Named) -> None:
    named.up()
    named.on("web", "ip", "address", "add", "192.0.2.7/32", "dev", "lo").expect()
    assert "192.0.2.7/32" in named.on("web", "ip", "address").expect().text


def test_tools_see_the_stack(named: Named) -> None:
    named.up('[[link]]\nkind = "none"\n[sysctl]\n"net.ipv4.ip_default_ttl" = 33\n')
    assert named.on("web", "ip", "-br", "link").expect().text.split()[0] == "lo"
    assert "ttl=33" in named.on("web", "ping", "-c1", "127.0.0.1").expect().text
    named.on("web", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "limit", "7").expect()
    assert "netem" in named.on("web", "tc", "qdisc").expect().text
    named.on("web", "nft", "add table ip mine").expect()
    assert "table ip mine" in named.on("web", "nft", "list", "tables").expect().text
    assert "tcp-segmentation-offload" in named.on("web", "ethtool", "-k", "lo").expect().text
    assert named.on("web", "sysctl", "-n", "net.ipv4.ip_default_ttl").expect().text == "33\n"
    named.on("web", "sysctl", "-w", "net.ipv4.ip_default_ttl=44").expect()
    assert "ttl=44" in named.on("web", "ping", "-c1", "127.0.0.1").expect().text
    assert "IcmpInEchos" in named.on("web", "nstat", "-az", "IcmpInEchos").expect().text


def test_tcpdump_sees_what_passes_and_the_monitor_what_changes(named: Named) -> None:
    named.up()
    with named.start("exec", "web", "--", "tcpdump", "-c1", "-nl", "-i", "lo", "icmp") as dump:
        wait_until_says(dump, "listening on lo")
        named.on("web", "ping", "-c1", "127.0.0.1").expect()
        assert "ICMP echo request" in dump.finish().expect().text
    with named.start("exec", "web", "--", "ip", "monitor", "address") as monitor:

        def seen() -> bool:
            named.on("web", "ip", "address", "replace", "192.0.2.7/32", "dev", "lo").expect()
            named.on("web", "ip", "address", "del", "192.0.2.7/32", "dev", "lo").expect()
            return "192.0.2.7" in monitor.said().text

        eventually(seen, "a change of addresses is told")


def test_exec_takes_the_stack_of_a_run_by_its_number(named: Named) -> None:
    with Process(
        [GUISE, "run", "--link", "none", "--cc", "bbr", "--", "sleep", "1000"], env=named.env
    ) as process:
        number = str(process.pid)
        eventually(lambda: named.ls().get(number, {}).get("members"), "the program is on it")
        assert named.python(number, CC) == "bbr\n"
    eventually(lambda: not named.ls(), "the stack ends with its program")


def test_exit_status_is_the_programs_own(named: Named) -> None:
    named.up()
    assert named.call("run", "--stack", "web", "--", "sh", "-c", "exit 7").status == 7
    assert named.on("web", "sh", "-c", "exit 8").status == 8
    assert named.on("web", "no-such-tool").status == 127


def test_what_the_config_says_of_names_reaches_programs_that_come_later(named: Named) -> None:
    named.up('localhost = true\ndns = ["192.0.2.53"]\n[mptcp]\nenabled = true\n' + ALONE)
    script = "import os; print(open('/etc/resolv.conf').read(), os.environ['GUISE_HOSTS'])"
    said = named.python("web", script)
    # The relay, which asks that server over the stack and knows guise's own names.
    assert re.search(r"^nameserver 169\.254\.77\.\d+$", said, re.M), said
    assert "169.254.77.1 host.guise.internal" in said
    assert named.python("web", "import os; print(os.environ['GUISE_MPTCP'])") == "1\n"


def test_every_part_of_a_config_is_applied(named: Named) -> None:
    config = """
netem = "delay 1ms"
[sysctl]
"net.ipv4.tcp_sack" = 0
[[route]]
to = "10.5.0.0/16"
link = "eth0"
[[route]]
to = "default"
via = "198.51.100.9"
link = "eth0"
table = 77
[[rule]]
from = "198.51.100.2"
priority = 500
table = 77
[[rule]]
mark = 3
table = 78
[mptcp]
enabled = true
subflows = 3
[[mptcp.endpoint]]
address = "198.51.100.2"
link = "eth0"
flags = ["signal"]
[[link]]
kind = "tap"
device = "%s"
mtu = 1400
mac = "02:00:00:00:00:77"
addresses = ["198.51.100.2/24", "2001:db8::2/64"]
gateways = ["198.51.100.1"]
"""
    if os.geteuid():
        pytest.skip("needs root, to make a tap")
    tap = f"t{os.getpid()}"
    named.up(config % tap)
    address = named.on("web", "ip", "address", "show", "eth0").expect().text
    for part in ("mtu 1400", "02:00:00:00:00:77", "198.51.100.2/24", "2001:db8::2/64"):
        assert part in address
    routes = named.on("web", "ip", "route").expect().text
    assert "default via 198.51.100.1" in routes and "10.5.0.0/16 dev eth0" in routes
    assert "via 198.51.100.9" in named.on("web", "ip", "route", "show", "table", "77").expect().text
    rules = named.on("web", "ip", "rule").expect().text
    assert "500:\tfrom 198.51.100.2 lookup 77" in rules and "fwmark 0x3 lookup 78" in rules
    assert "fwmark 0x3 lookup 78" in named.on("web", "ip", "-6", "rule").expect().text
    assert "delay 1ms" in named.on("web", "tc", "qdisc", "show", "dev", "eth0").expect().text
    endpoints = named.on("web", "ip", "mptcp", "endpoint").expect().text
    assert "198.51.100.2" in endpoints and "signal" in endpoints
    assert "subflows 3" in named.on("web", "ip", "mptcp", "limits").expect().text


def test_ruleset_is_nfts_and_in_force(named: Named) -> None:
    chain = "type filter hook input priority 0; tcp dport 4000 reject with tcp reset"
    rules = f"table inet mine {{\nchain in {{\n{chain}\n}}\n}}\n"
    named.up(f"nftables = '''\n{rules}'''\n" + ALONE)
    assert "tcp dport 4000" in named.on("web", "nft", "list", "ruleset").expect().text
    with named.serve():
        script = "import socket; print(socket.socket().connect_ex(('127.0.0.1', 4000)))"
        assert named.python("web", script) == "111\n"


def test_ruleset_that_nft_does_not_take_leaves_no_stack(named: Named) -> None:
    path = named.write("\nnftables = 'table inet { chian }'\n" + ALONE)
    done = named.call("up", path).expect(2)
    assert f"{path}:2: nftables" in done.errors and "syntax error" in done.errors
    assert named.ls() == {}


def test_profile_is_applied_by_run_and_by_a_config(named: Named) -> None:
    look = [PYTHON, "-c", "import os; print(open('/proc/sys/net/ipv4/tcp_rmem').read().split())"]
    named.up('profile = "android-2.1"\n' + ALONE)
    assert named.call("run", "--stack", "web", "--", *look).expect().text == (
        "['4096', '87380', '110208']\n"
    )
    words = ["run", "--link", "none", "--profile", "ubuntu-9.10", "--", *look]
    assert named.call(*words).expect().text == "['4096', '87380', '1966080']\n"
    listed = named.call("profiles").expect().text
    assert "android-2.1\n" in listed and "ubuntu-9.10\n" in listed and "110208" in listed


def test_published_port_leads_to_a_program_that_comes_later(named: Named) -> None:
    named.up(f'publish = ["{OWN_ADDRESS}:20080:80"]\n' + ALONE)
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 80)); print('ready', flush=True)\n"
        "s.accept()[0].sendall(b'from the stack')"
    )
    with named.start("run", "--stack", "web", "--", PYTHON, "-c", script) as server:
        wait_until_says(server, "ready")

        def answer() -> bytes:
            try:
                with socket.create_connection((OWN_ADDRESS, 20080), 10) as client:
                    return client.recv(100)
            except ConnectionRefusedError:
                return b""

        assert eventually(answer, "the port is published") == b"from the stack"
        server.finish().expect()


# ---- the end ------------------------------------------------------------------------------------


def test_down_gives_enetdown_to_who_is_on_it(named: Named) -> None:
    named.up()
    with named.serve() as server:
        named.call("down", "web").expect()
        assert "Network is down" in server.finish().text
    assert named.ls() == {}


def test_run_says_that_its_stack_was_taken_down(named: Named) -> None:
    words = ["run", "-v", "--link", "none", "--", PYTHON, "-c", SERVE]
    with named.start(*words) as server:
        wait_until_says(server, "ready")
        [number] = named.ls()
        named.call("down", number).expect()
        done = server.finish()
    assert "Network is down" in done.text
    assert "the stack was taken down (guise down)" in done.errors


def test_drain_lets_programs_finish_and_no_other_on(named: Named) -> None:
    named.up()
    with named.serve() as server, named.start("down", "web", "--drain", "1h") as down:
        eventually(lambda: named.ls()["web"]["ending"], "the stack is ending")
        refused = named.on("web", "true")
        assert refused.status == 2 and "is being taken down" in refused.errors
        eventually(lambda: "1 program is still on web" in down.said().errors, "who is on it")
        assert server.running()
        server.stop()
        down.finish().expect()
    assert named.ls() == {}


def test_drain_has_an_end(named: Named) -> None:
    named.up()
    with named.serve() as server:
        named.call("down", "web", "--drain", "200ms").expect()
        assert "Network is down" in server.finish().text


def test_down_of_a_stack_that_stands_still(named: Named) -> None:
    """A stopped program may own the virtual CPU, and does not keep the stack from its end."""
    named.up()
    with named.serve() as server:
        server.signal(signal.SIGSTOP)
        named.call("down", "web").expect()
        assert named.ls() == {}
        server.signal(signal.SIGCONT)
        server.finish()


def test_upgrade_gives_the_name_to_a_new_stack_and_lets_the_old_one_end(named: Named) -> None:
    named.up('cc = "reno"\n' + ALONE)
    old = named.ls()["web"]["holder"]
    with named.serve() as server:
        named.write('cc = "bbr"\n' + ALONE)
        done = named.call("upgrade", "web").expect()
        assert "1 program is still on the old one" in done.errors
        stacks = named.ls()
        assert len(stacks) == 2 and stacks["web"]["holder"] != old
        [number] = set(stacks) - {"web"}
        assert stacks[number]["holder"] == old and stacks[number]["ending"]
        assert named.python("web", CC) == "bbr\n"
        assert server.running()
    eventually(lambda: list(named.ls()) == ["web"], "the old stack ends with its program")


def test_upgrade_that_fails_leaves_the_stack_as_it_was(named: Named) -> None:
    named.up('cc = "reno"\n' + ALONE)
    named.write('cc = "reno"\n' + ALONE + '[sysctl]\n"net.ipv4.nosuch" = 1\n')
    done = named.call("upgrade", "web").expect(2)
    assert "is as it was" in done.errors and "net.ipv4.nosuch" in done.errors
    assert list(named.ls()) == ["web"]
    assert named.python("web", CC) == "reno\n"


def test_upgrade_of_what_one_stack_only_can_have_ends_the_old_one_first(named: Named) -> None:
    named.up(f'localhost = true\npublish = ["{OWN_ADDRESS}:20080:80"]\n' + ALONE)
    done = named.call("upgrade", "web").expect()
    assert f"{OWN_ADDRESS}:20080/tcp can belong to one stack only" in done.errors
    assert list(named.ls()) == ["web"]


# ---- what can go wrong --------------------------------------------------------------------------


def test_of_two_that_want_a_name_at_once_one_gets_it(named: Named) -> None:
    path = named.write(ALONE)
    starts = [named.start("up", path) for _ in range(4)]
    done = [start.finish() for start in starts]
    assert sorted(d.status for d in done) == [0, 2, 2, 2], done
    assert all("there is a stack web already" in d.errors for d in done if d.status)
    assert list(named.ls()) == ["web"]


def test_killed_holder_gives_its_name_back(named: Named) -> None:
    named.up()
    os.kill(named.ls()["web"]["holder"], signal.SIGKILL)
    eventually(lambda: not named.ls(), "it is listed no more")
    named.up()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_up_that_is_interrupted_leaves_nothing(named: Named, ending: signal.Signals) -> None:
    """nft is what it waits for here."""
    folder = named.folder / "bin"
    folder.mkdir()
    nft = folder / "nft"
    nft.write_text(f"#!/bin/sh\ntouch {named.folder}/reached\nexec sleep 1000\n")
    nft.chmod(0o755)
    path = named.write("nftables = 'x'\n" + ALONE)
    env = {**named.env, "PATH": f"{folder}:{os.environ['PATH']}"}
    # Tests that run in the background have SIGINT ignored, and so would guise.
    with Process(["env", "--default-signal", GUISE, "up", path], env=env) as up:
        eventually(lambda: (named.folder / "reached").exists(), "nft is run")
        up.signal(ending)
        assert up.finish().status == 128 + ending
    eventually(lambda: not named.ls(), "the stack is gone")


@pytest.mark.parametrize(
    ("words", "named_words"),
    [
        (["exec", "wbe", "--", "ip", "a"], ["wbe", "did you mean web"]),
        (["run", "--stack", "nosuch", "--", "true"], ["nosuch", "valid are web"]),
        (["down", "nosuch"], ["nosuch", "web"]),
        (["upgrade", "nosuch"], ["nosuch", "web"]),
        (["down", "../web"], ["../web"]),
        (["down"], ["guise down STACK"]),
        (["down", "web", "--drain", "-1s"], ["-1s", "0s"]),
        (["exec", "web"], ["guise exec STACK -- TOOL"]),
        (["run", "--stack", "web"], ["no program", "CMD"]),
        (["run", "--stack", "web", "--cc", "bbr", "--", "true"], ["--cc", "--stack alone"]),
        (["up"], ["guise up FILE"]),
        (["up", ""], ["guise up FILE"]),
        (["up", "nosuch.toml"], ["nosuch.toml", "no such file"]),
        (["up", "--name", "a/b", "web.toml"], ["--name", "a/b", "letters"]),
        (["up", "--name", "x" * 33, "web.toml"], ["x" * 33, "1 to 32"]),
        (["up", "web.toml"], ["there is a stack web already", "guise down web"]),
        (["run", "--profile", "android", "--", "true"], ["--profile", "android", "ubuntu-9.10"]),
        (["ls", "nosuch"], ["nosuch", "web"]),
        (["ls", "web", "other"], ["other", "guise ls"]),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_mistakes_are_named(named: Named, words: list[str], named_words: list[str]) -> None:
    named.up()
    done = named.call(*words).expect(2)
    assert done.text == ""
    for word in named_words:
        assert word in done.errors, done
    assert list(named.ls()) == ["web"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('memry = "64M"', ["web.toml:1:", "memry", "memory"]),
        ("memory = 64", ["web.toml:1:", "memory", "a text in quotes"]),
        ('[[route]]\nto = "10.0.0.0/8"\nlink = "eth9"', ["web.toml:1:", "route.0", "eth9", "eth0"]),
        ('[[rule]]\nin = "eth9"\ntable = 7', ["web.toml:1:", "rule.0", "eth9"]),
        ('[[rule]]\nfrom = "10.0.0.0/8"', ["web.toml:1:", "rule.0", "table = 100"]),
        ('[[mptcp.endpoint]]\naddress = "x"', ["web.toml:1:", "mptcp.endpoint.0", "192.0.2.2"]),
        ("[mptcp]\nsubflows = 9", ["web.toml:2:", "mptcp.subflows", "0 to 8"]),
        ('[[link]]\nkind = "tap"\nmtu = 20', ["web.toml:3:", "link.0.mtu", "68"]),
        ('[[link]]\nkind = "tap"\naddresses = ["10.0.0.0/24"]', ["web.toml:3:", "10.0.0.1/24"]),
        ('[[link]]\nname = "lo"', ["web.toml:1:", "lo already"]),
        ('cc = "westwod"', ["web.toml:1:", "cc", "westwood"]),
        ('name = "a/b"', ["web.toml:1:", "name", "a/b", "letters"]),
        ('profile = "android"', ["web.toml:1:", "profile", "android-2.1"]),
        ('publish = ["80"]', ["web.toml:1:", "publish.0", "HOSTPORT:PORT"]),
        ('[sysctl]\n"net.ipv4.nosuch" = 1\n' + ALONE, ["web.toml:2:", "net.ipv4.nosuch"]),
        ('netem = "dely 1ms"', ["web.toml:1:", "netem", "dely"]),
        ('netem = "delay 1ms"\n' + ALONE, ["web.toml:1:", "netem", "link"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_in_a_config_are_named(named: Named, text: str, words: list[str]) -> None:
    if "dely" in text and os.geteuid():
        pytest.skip("needs root, for a link to impair")
    done = named.call("up", named.write(text)).expect(2)
    for word in words:
        assert word in done.errors, done
    assert named.ls() == {}


def test_config_from_standard_input_needs_a_name(named: Named) -> None:
    done = named.call("up", "-", stdin=ALONE.encode()).expect(2)
    assert "no name" in done.errors and "--name" in done.errors
    named.call("up", "-", "--name", "web", stdin=ALONE.encode()).expect()
    assert "standard input" in named.call("upgrade", "web").expect(2).errors


@pytest.mark.parametrize("folder", ["/proc/guise", "/dev/full"])
def test_without_a_runtime_folder_there_is_no_named_stack(named: Named, folder: str) -> None:
    path = named.write(ALONE)
    done = run([GUISE, "up", path], env={"GUISE_RUNDIR": folder})
    assert done.status == 125 and folder in done.errors and "$GUISE_RUNDIR" in done.errors


def test_full_disk_is_said_and_leaves_nothing(named: Named) -> None:
    if os.geteuid():
        pytest.skip("needs root, to mount a small file system")
    named.run_dir.mkdir()
    small = ["-t", "tmpfs", "-o", "size=4k,nr_inodes=1,mode=700", "small"]
    run(["mount", *small, named.run_dir]).expect()
    try:
        done = named.call("up", named.write(ALONE)).expect(125)
        assert "no space left" in done.errors and "$GUISE_RUNDIR" in done.errors
        assert not list(named.run_dir.iterdir())
    finally:
        run(["umount", named.run_dir]).expect()
        named.run_dir.rmdir()


def test_stack_of_another_version_is_refused_before_anything_is_run(named: Named) -> None:
    """Its holder says which guise it is of."""
    shutil.copy(GUISE, named.folder / "guise")
    holder = (GUISE.parent / "guise-holder").read_bytes()
    assert holder.count(b'"version":"0.1.0"') == 1
    for part in ("libguise-preload.so", "guise-kernel"):
        (named.folder / part).symlink_to(GUISE.parent / part)
    other = named.folder / "guise-holder"
    other.write_bytes(holder.replace(b'"version":"0.1.0"', b'"version":"0.0.9"'))
    other.chmod(0o755)
    run([named.folder / "guise", "up", named.write(ALONE)], env=named.env).expect()
    done = named.on("web", "touch", str(named.folder / "never")).expect(2)
    assert "guise 0.0.9" in done.errors and "0.1.0" in done.errors
    assert not (named.folder / "never").exists()


@pytest.fixture
def user(named: Named) -> User:
    if os.geteuid():
        pytest.skip("needs root, to be another user")
    return User(named.folder / "home")


def test_folder_of_another_user_is_not_trusted(named: Named, user: User) -> None:
    done = run([GUISE, "up", named.write(ALONE)], env={"GUISE_RUNDIR": str(user.home)})
    assert done.status == 125 and f"belongs to user {user.id}" in done.errors


def test_stack_of_another_user_cannot_be_used(named: Named, user: User) -> None:
    named.up()
    done = run(user.command(GUISE, "exec", "web", "--", "true"), env=named.env).expect(2)
    assert "belongs to another user" in done.errors


def test_a_user_without_root_has_named_stacks(named: Named, user: User) -> None:
    """In a folder of the user's own; ping has no capabilities there, and works."""
    named.folder.chmod(0o755)
    path = named.write(ALONE)

    def call(*words: str) -> Finished:
        own = ["env", "-u", "XDG_RUNTIME_DIR", "-u", "GUISE_RUNDIR", str(GUISE)]
        return run(user.command(*own, *words), cwd="/").expect()

    call("up", path)
    folder = Path(f"/tmp/guise-{user.id}")
    try:
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (user.id, 0o700)
        assert "1 received" in call("exec", "web", "--", "ping", "-c1", "127.0.0.1").text
        assert '"stack": "web"' in call("ls", "--json").text
    finally:
        call("down", "web")
    assert not folder.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_stacks(named: Named, shell: str) -> None:
    named.up()
    assert "guise" in named.call("completion", shell).expect().text
    for words in (["exec", ""], ["down", ""], ["upgrade", ""], ["run", "--stack", ""]):
        assert "web\n" in named.call("__complete", *words).expect().text
    assert "android-2.1\n" in named.call("__complete", "run", "--profile", "").expect().text
    assert "westwood\n" in named.call("__complete", "run", "--cc", "").expect().text


@pytest.mark.parametrize("which", ["warden", "carrier", "both"])
def test_down_ends_a_stopped_holder_by_force(named: Named, which: str) -> None:
    named.up()
    [stack] = named.ls().values()
    warden = stack["holder"]
    carrier = carrier_of(warden)
    for pid in {"warden": [warden], "carrier": [carrier], "both": [warden, carrier]}[which]:
        os.kill(pid, signal.SIGSTOP)
    done = named.call("down", "web").expect()
    assert "does not answer" in done.errors and "it was killed" in done.errors, done
    assert not named.ls()
