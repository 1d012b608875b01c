# SPDX-License-Identifier: GPL-2.0-only
"""On a Debian that has only the minimum, the README leads to a guise that works: every command of
its code blocks is typed as it stands there, by root and by a user who may call sudo.

    the README's first command, which fetches   in the network that this machine has
    all others, in one shell                    in a namespace of the test's own, which has
                                                a default route that leads nowhere
"""

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from topology.namespace import Namespace
from topology.process import Process, eventually
from topology.side import wait_until_says
from topology.user import make_way_out

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 5400.0
WALK_SECONDS = 1800.0

# What is mounted, and what is started, ends with the namespaces; these end with the process that
# made them, which ends with this one. debootstrap mounts, too.
DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
APART = [*DIES_WITH_US, "unshare", "--mount", "--pid", "--fork", "--kill-child"]

# A system of its own, with devices of its own: `guise setup` may open /dev/net/tun to all. Not a
# chroot, in which no user may make a user namespace, as passt does.
IN_ROOT = """
set -e
mount --bind "$1" /mnt
cd /mnt
shift
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/net dev/pts dev/shm
for device in null zero full random urandom tty; do
    touch dev/$device
    mount --bind /dev/$device dev/$device
done
mknod -m 666 dev/net/tun c 10 200
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t proc proc proc
mount -t sysfs sysfs sys
pivot_root . mnt
umount -l /mnt
exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
"""


def apart(*command: str | Path) -> str:
    with Process([*APART, *command]) as process:
        return process.finish(BUILD_SECONDS).expect().text


def command_in_root(root: Path, *command: str) -> list[str | Path]:
    return ["sh", "-c", IN_ROOT, "sh", root, *command]


def in_root(root: Path, *command: str) -> str:
    return apart(*command_in_root(root, *command))


def links_of_processes(name: str) -> set[str]:
    """What that link in /proc/PID leads to, for all running processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry / name))
    return found


def mounts(*points: str) -> list[str]:
    listing = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line for line in listing if line.split()[4].startswith(points)]


@pytest.fixture(scope="module")
def needs_root() -> None:
    if os.geteuid():
        pytest.skip("needs root, for a system of its own")


@pytest.fixture(scope="module")
def pristine(needs_root: None, suite: str) -> Iterator[Path]:
    """The root of a minimal system, with its security updates."""
    if not shutil.which("debootstrap"):
        pytest.skip("needs debootstrap")
    with tempfile.TemporaryDirectory(prefix="guise-test-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "root"
        apart("debootstrap", "--variant=minbase", suite, root)
        sources = root / "etc/apt/sources.list"
        main = sources.read_text()
        security = main.replace(f"/debian {suite} ", f"/debian-security {suite}-security ")
        sources.write_text(main + security)
        # A site's own certificates are as good inside as outside.
        own = Path("/usr/local/share/ca-certificates")
        if own.is_dir():
            shutil.copytree(own, root / own.relative_to("/"), dirs_exist_ok=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        yield root


@pytest.fixture
def minimal(pristine: Path, tmp_path: Path) -> Iterator[Path]:
    """Such a system for one test."""
    root = tmp_path / "root"
    apart("cp", "-a", pristine, root)
    yield root
    inside = str(tmp_path)
    eventually(
        lambda: not any(at.startswith(inside) for at in links_of_processes("root")),
        "nothing runs in the root any more",
    )
    assert not mounts(inside)


def commands_of(document: Path) -> list[str]:
    """The text after the prompts in its code blocks."""
    blocks = re.findall(r"^```\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "$ "]


@dataclass
class Answer:
    line: str
    status: int
    said: str

    def __str__(self) -> str:
        return f"$ {self.line}{self.said}(status {self.status})"


class Walker:
    """The user who types: root, or one who may call sudo without a password."""

    def __init__(self, root: Path, who: str) -> None:
        self.root, self.who = root, who
        self.home = "/root" if who == "root" else f"/home/{who}"
        if who != "root":
            in_root(root, "useradd", "--create-home", "--shell", "/bin/bash", who)
            in_root(root, "sh", "-c", "apt-get -qq update && apt-get -qq install -y sudo")
            (root / "etc/sudoers.d" / who).write_text(f"{who} ALL=(ALL) NOPASSWD: ALL\n")
        apart("git", "clone", "-q", ROOT, root / self.home[1:] / "guise")
        in_root(root, "chown", "-R", f"{who}:", f"{self.home}/guise")

    def command(self, script: str) -> list[str | Path]:
        drop = ["setpriv", f"--reuid={self.who}", f"--regid={self.who}", "--init-groups"]
        names = [f"HOME={self.home}", f"USER={self.who}", f"LOGNAME={self.who}"]
        change = f"cd {self.home}/guise; {script}"
        return command_in_root(self.root, *drop, "env", *names, "bash", "-c", change)

    def types(self, lines: list[str], network: Namespace) -> list[Answer]:
        """Types the lines into one shell."""
        script = "".join(
            f"echo '>>> {number}'\n{line}\necho '<<< {number}' $?\n"
            for number, line in enumerate(lines)
        )
        walk = self.root / "tmp/walk"
        walk.write_text(script)
        with Process(network.command(*APART, *self.command("bash /tmp/walk 2>&1"))) as process:
            said = process.finish(WALK_SECONDS).text
        answers = []
        for number, line in enumerate(lines):
            found = re.search(rf"^>>> {number}$(.*?)^<<< {number} (\d+)$", said, re.M | re.S)
            assert found, f"{line!r} did not end:\n{said}"
            answers.append(Answer(line, int(found[2]), found[1]))
        return answers


# A part of a command, and what its answer has, for root and for a user.
ANSWERS = [
    ("run -- ip -br addr", r"eth0 +UNKNOWN +10\.213\.0\.2/30", None),
    ("run -- ip route", r"default via 10\.213\.0\.1 dev eth0", None),
    ("curl -sI --retry 9 --retry-connrefused http://host.guise.internal", r"HTTP/1.0 200 OK", None),
    ("python3 -m http.server 80 2>", r"HTTP/1.0 200 OK", None),
    (
        "run -v --cc westwood",
        r"receiver\n(?s:.*)^guise: westwood on the wire, 1 program, 2 connections, 0 sockets",
        None,
    ),
    ("demo/run", r"(?s:.*iperf3 -R){4}", None),
    (
        "run -v --cc bbr",
        r"^guise: bbr on the wire, 1 program, 2 connections, 0 sockets escaped",
        r"^guise: bbr (on the wire|as far as passt), 1 program, 2 connections, 0 sockets escaped",
    ),
    ("guise setup", r"", r"tap guise-u0 of user"),
    ("curl -sI --retry 9 --retry-connrefused http://127.0.0.1:8080", r"HTTP/1.0 200 OK", None),
    ("exec web -- ss", r"LISTEN .* 0\.0\.0\.0:80 ", None),
    ("guise ls", r"^web .* up$", None),
    ("guise --version", r"^guise \d", None),
    ("examples/pair", r"100000000 received, bbr", None),
]


@pytest.mark.slow
@pytest.mark.timeout(3 * BUILD_SECONDS)
@pytest.mark.parametrize("who", ["root", "you"])
@pytest.mark.parametrize("suite", ["bookworm", "trixie"], scope="module")
def test_the_readme_is_walked_line_by_line(minimal: Path, who: str) -> None:
    first, *others = commands_of(ROOT / "README.md")
    assert first == "./bootstrap"
    walker = Walker(minimal, who)
    with Process([*APART, *walker.command(f"{first} 2>&1")]) as process:
        built = process.finish(BUILD_SECONDS).expect().text
    assert re.search(r"KERNEL [1-6]00 files", built), "it shows what it does"
    last = built.splitlines()[-1]
    assert last == "bootstrap: guise is ready in build; try: build/guise run -- ip -br addr"
    with Namespace("home") as network:
        make_way_out(network)
        answers = walker.types(others, network)
    wrong = [str(answer) for answer in answers if answer.status]
    for part, of_root, of_user in ANSWERS:
        told = [answer for answer in answers if part in answer.line]
        assert told, f"no command of the README has {part!r}"
        pattern = of_root if who == "root" else of_user or of_root
        wrong += [
            f"{answer} does not have {pattern}"
            for answer in told
            if not re.search(pattern, answer.said, re.MULTILINE)
        ]
    assert not wrong, "\n\n".join(wrong)
    if who != "root":
        through = ["as far as passt" in a.said for a in answers if "run -v --cc bbr" in a.line]
        assert through == [True, False], "before and after guise setup"


# As the test above: it starts something in a root, one part of which leaves its session.
STARTER = """
import sys
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from test_fresh_debian import APART, command_in_root
from topology.process import Process
from topology.side import wait_until_says
command = "readlink /proc/self/ns/pid; setsid sleep 1000 & sleep 1000"
with Process([*APART, *command_in_root(Path("/"), "sh", "-c", command)]) as process:
    wait_until_says(process, "]")
    print(process.said().text, flush=True)
    process.finish(1000)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_what_runs_in_a_root_ends_with_the_tests(needs_root: None, end: signal.Signals) -> None:
    here = Path(__file__).parent
    before = mounts("/dev", "/proc", "/sys")
    with Process([sys.executable, "-c", STARTER, here, here.parent]) as starter:
        wait_until_says(starter, "pid:[")
        inside = starter.said().text.strip()
        assert inside in links_of_processes("ns/pid")
        starter.signal(end)
        eventually(lambda: inside not in links_of_processes("ns/pid"), "all of it has ended")
    assert mounts("/dev", "/proc", "/sys") == before
