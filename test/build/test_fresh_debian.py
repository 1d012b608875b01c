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
APART = [*DIES_WITH_US, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"]

# A system of its own, with devices of its own: `guise setup` may open /dev/net/tun to all. Not a
# chroot, in which no user may make a user namespace, as passt does. Its name is what sudo and
# Python look up.
NAME = "fresh"
HOSTS = f"127.0.0.1 localhost\n127.0.1.1 {NAME}\n::1 localhost ip6-localhost ip6-loopback\n"
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
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t proc proc proc
mount -t sysfs sysfs sys
pivot_root . mnt
umount -l /mnt
echo "$NAME" >/proc/sys/kernel/hostname
exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
"""


def apart(*command: str | Path) -> str:
    with Process([*APART, *command]) as process:
        return process.finish(BUILD_SECONDS).expect().text


def command_in_root(root: Path, *command: str) -> list[str | Path]:
    return ["env", f"NAME={NAME}", "sh", "-c", IN_ROOT, "sh", root, *command]


def in_root(root: Path, *command: str) -> str:
    return apart(*command_in_root(root, *command))


def links_of_processes(name: str) -> set[str]:
    """What that link in /proc/PID says, of all that run."""
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
        (root / "etc/hosts").write_text(HOSTS)  # as Debian's installer does
        yield root


@pytest.fixture(scope="module")
def compiled(pristine: Path) -> Path:
    """Where the compilers' cache of a suite's first build is kept. That build has nothing to begin
    with, as a new user's; the next one differs in who calls it."""
    return pristine.parent / "compiled"


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


@dataclass
class Example:
    """A command of a document's code blocks, and what stands below it."""

    line: str
    shown: list[str]


def examples_of(document: Path) -> list[Example]:
    examples: list[Example] = []
    for block in re.findall(r"^```\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S):
        for line in filter(None, block.splitlines()):
            if line.startswith("$ "):
                examples.append(Example(line[2:], []))
            elif block.startswith("$ "):
                examples[-1].shown.append(line)
    return examples


# What differs from run to run, as a document shows it and as it may be.
NUMBER = r"\d+(?:\.\d+)?"
VARIES = [
    r"fe80::[0-9a-f:]+",
    r"local 10\.213\.0\.2 port \d+",
    rf"{NUMBER}-{NUMBER} +sec +{NUMBER} [KMG]?Bytes +{NUMBER} [KMG]?bits/sec(?: +\d+)?",
    rf"{NUMBER} [KMG]?Bytes",
    r"\d+ Mbit/s, \d+ retransmitted",
    # curl tries IPv6 first, some versions twice.
    r"passt, 1 program, \d connections",
    # The header that ss has on Debian 12, and on 13.
    r"Peer Address:Port(?:Process)?",
    r"\(go[\d.]+, linux/\w+\)",
    # What guise ls counts: age, members, sockets, sent, received, memory.
    r"web +\d+s +\d+",
    rf"tap:eth0 +\d+ +{NUMBER}[BKM] +{NUMBER}[BKM] +{NUMBER}[BKM]",
]
# It stands for any lines.
ANY = "…"


def pattern_of(shown: list[str]) -> str:
    """What is shown, whatever blanks align it."""
    pattern = ""
    for line in shown:
        if line == ANY:
            pattern += r"(?:.*\n)*"
            continue
        for part in re.split(f"({'|'.join(VARIES)})", line):
            varies = [each for each in VARIES if re.fullmatch(each, part)]
            words = [re.escape(word) for word in re.split(" +", part)]
            pattern += varies[0] if varies else " +".join(words)
        pattern += " *\n"
    return pattern


@dataclass
class Answer:
    line: str
    status: int
    said: str

    def __str__(self) -> str:
        return f"$ {self.line}\n{self.said}(status {self.status})"

    def has(self, pattern: str) -> bool:
        lines = [line for line in self.said.splitlines() if line.strip()]
        return bool(re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)))


class Walker:
    """Who types: root, or a user who may call sudo without a password."""

    def __init__(self, root: Path, who: str) -> None:
        self.root, self.who = root, who
        self.home = "/root" if who == "root" else f"/home/{who}"
        self.compiled = root / self.home[1:] / ".cache/guise/ccache"
        if who != "root":
            in_root(root, "useradd", "--create-home", "--shell", "/bin/bash", who)
            in_root(root, "sh", "-c", "apt-get -qq update && apt-get -qq install -y sudo")
            (root / "etc/sudoers.d" / who).write_text(f"{who} ALL=(ALL) NOPASSWD: ALL\n")
        apart("git", "clone", "-q", ROOT, root / self.home[1:] / "guise")
        in_root(root, "chown", "-R", f"{who}:", f"{self.home}/guise")

    def has(self, compiled: Path) -> None:
        """What the compilers made for who walked before."""
        if compiled.is_dir():
            self.compiled.parent.mkdir(parents=True)
            apart("cp", "-r", compiled, self.compiled)
            in_root(self.root, "chown", "-R", f"{self.who}:", f"{self.home}/.cache")

    def leaves(self, compiled: Path) -> None:
        if not compiled.is_dir():
            apart("cp", "-r", self.compiled, compiled)

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
            found = re.search(rf"^>>> {number}\n(.*?)^<<< {number} (\d+)$", said, re.M | re.S)
            assert found, f"{line!r} did not end:\n{said}"
            answers.append(Answer(line, int(found[2]), found[1]))
        return answers


# A part of a command, who types it, and what the answer is where it is not what the README shows:
# the README has a user whose host knows Reno and CUBIC.
OTHER = [
    ("tcp_available_congestion_control", "root you", r".*\n"),
    ("curl -s -o /dev/null", "root", r"guise: bbr on the wire, 1 program, \d connections, 0 .*\n"),
    ("guise setup", "root", r"root needs nothing set up.*\n"),
    ("guise setup --undo", "root", r"nothing is set up\n"),
    ("demo/run", "root you", r"demo: two namespaces.*\n(?s:.*)(?s:iperf3 -R.*){4}"),
    ("make install", "root you", r"(?s:.*)"),
    ("make uninstall", "root you", r"(?s:.*)"),
]


def expected(example: Example, who: str) -> str:
    other = [pattern for part, of, pattern in OTHER if part in example.line and who in of.split()]
    return other[-1] if other else pattern_of(example.shown)


@pytest.mark.slow
@pytest.mark.timeout(3 * BUILD_SECONDS)
@pytest.mark.parametrize("who", ["root", "you"])
@pytest.mark.parametrize("suite", ["bookworm", "trixie"], scope="module")
def test_the_readme_is_walked_line_by_line(minimal: Path, compiled: Path, who: str) -> None:
    first, *others = examples_of(ROOT / "README.md")
    assert first.line == "./bootstrap"
    walker = Walker(minimal, who)
    walker.has(compiled)
    with Process([*APART, *walker.command(f"{first.line} 2>&1")]) as process:
        built = process.finish(BUILD_SECONDS).expect().text
    assert re.search(r"KERNEL [1-6]00 files", built), "it shows what it does"
    last = built.splitlines()[-1]
    assert last == "bootstrap: guise is ready in build; try: build/guise run -- ip -br addr"
    walker.leaves(compiled)
    with Namespace("home") as network:
        make_way_out(network)
        answers = walker.types([example.line for example in others], network)
    wrong = [
        f"{answer}\ninstead of\n{expected(example, who)}"
        for example, answer in zip(others, answers, strict=True)
        if answer.status or not answer.has(expected(example, who))
    ]
    assert not wrong, "\n\n".join(wrong)
    left = [
        path for top in ("etc", "run", "usr/local") for path in (minimal / top).rglob("*guise*")
    ]
    assert not left, "what it made is taken back"


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
