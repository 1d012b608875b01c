# SPDX-License-Identifier: GPL-2.0-only
"""bootstrap makes a build possible on a machine that lacks everything, and changes the machine no
more than necessary: it asks for root only when a package is missing, and says which and why. It
downloads everything first, and at the end it says what to type."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from topology.process import Process, eventually
from topology.side import wait_until_says

ROOT = Path(__file__).resolve().parents[2]


class Machine:
    """A checkout of its own, and a PATH with a few tools and the test's own programs, with which
    bootstrap runs. (What runs these tests has the lock of the checkout that they are from.)"""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.checkout.mkdir()
        for file in ("bootstrap", "versions.env", "Makefile"):
            shutil.copy(ROOT / file, self.checkout)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.dpkg = folder / "dpkg"
        (self.dpkg / "updates").mkdir(parents=True)
        self.log = folder / "log"
        self.log.touch()
        for tool in ("sh", "dirname", "env", "cat", "flock", "grep", "ls", "sed", "sleep"):
            found = shutil.which(tool)
            assert found
            (self.bin / tool).symlink_to(found)

    def has(self, name: str, script: str) -> None:
        """A program that notes how it was called and then does what script says."""
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.log}"\n{script}\n')
        path.chmod(0o755)

    def bootstrap(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.checkout / "bootstrap", *arguments],
            env={"PATH": str(self.bin), "DPKG_ADMINDIR": str(self.dpkg)},
            capture_output=True,
            text=True,
        )

    def starts(self, terminal: int | None = None) -> Process:
        command: list[str | Path] = ["env", "-i", f"PATH={self.bin}", f"DPKG_ADMINDIR={self.dpkg}"]
        command.append(self.checkout / "bootstrap")
        return Process(command, terminal=terminal)

    def calls(self, name: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(f"{name} ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.has("make", "")
    machine.has("nproc", "echo 3")
    machine.has("go", "")
    machine.has("dpkg-query", "printf installed")
    machine.has("id", "echo 1000")
    machine.has("sudo", 'exec "$@"')
    machine.has("apt-get", "")
    machine.has("dpkg", "")
    return machine


def lacks(machine: Machine, package: str) -> None:
    machine.has("dpkg-query", f'for last; do :; done; [ "$last" = {package} ] || printf installed')


def test_asks_for_nothing_when_nothing_is_missing(machine: Machine) -> None:
    assert machine.bootstrap("check", "V=1").returncode == 0
    assert not machine.calls("sudo")
    assert not machine.calls("apt-get")
    assert machine.calls("make") == ["make fetch-check V=1", "make check V=1"]


def test_one_compiler_for_each_processor(machine: Machine) -> None:
    machine.has("make", f'echo "flags $MAKEFLAGS" >>"{machine.log}"')
    assert machine.bootstrap().returncode == 0
    assert machine.calls("flags") == ["flags -j3", "flags -j3"]


def test_installs_what_is_missing_and_says_why_it_needs_root(machine: Machine) -> None:
    lacks(machine, "bison")
    done = machine.bootstrap()
    assert done.returncode == 0
    assert "missing: bison" in done.stderr
    assert "needs root" in done.stderr and "password" in done.stderr
    assert machine.calls("apt-get")[-1].endswith("--no-install-recommends bison")
    assert len(machine.calls("sudo")) == 2
    assert machine.calls("make") == ["make fetch", "make "]


def test_root_needs_no_sudo(machine: Machine) -> None:
    lacks(machine, "bison")
    machine.has("id", "echo 0")
    assert machine.bootstrap().returncode == 0
    assert machine.calls("apt-get")
    assert not machine.calls("sudo")


def test_without_sudo_says_what_root_has_to_do(machine: Machine) -> None:
    lacks(machine, "bison")
    (machine.bin / "sudo").unlink()
    done = machine.bootstrap()
    assert done.returncode == 1
    assert "apt-get install --no-install-recommends bison" in done.stderr
    assert not machine.calls("make")


def test_packages_for_tests_only_where_tests_run(machine: Machine) -> None:
    lacks(machine, "socat")
    assert machine.bootstrap("all").returncode == 0
    assert not machine.calls("apt-get")
    assert machine.bootstrap("check").returncode == 0
    assert machine.calls("apt-get")


def test_the_load_generator_only_for_servers_that_are_measured(machine: Machine) -> None:
    lacks(machine, "wrk")
    assert machine.bootstrap("check").returncode == 0
    assert not machine.calls("apt-get")
    assert machine.bootstrap("bench-servers", "SERVERS=jvm").returncode == 0
    assert machine.calls("apt-get")
    assert machine.calls("make")[2:] == [
        "make fetch-bench SERVERS=jvm",
        "make bench-servers SERVERS=jvm",
    ]


def test_virtual_machines_only_for_the_slow_tests(machine: Machine) -> None:
    lacks(machine, "qemu-system-arm")
    assert machine.bootstrap("check").returncode == 0
    assert not machine.calls("apt-get")
    assert machine.bootstrap("check-all").returncode == 0
    assert machine.calls("apt-get")[-1].endswith(" qemu-system-arm")


def test_debians_go_only_where_there_is_none(machine: Machine) -> None:
    machine.has("dpkg-query", 'for last; do :; done; [ "$last" = golang-go ] || printf installed')
    assert machine.bootstrap().returncode == 0
    assert not machine.calls("apt-get")
    (machine.bin / "go").unlink()
    assert machine.bootstrap().returncode == 0
    assert machine.calls("apt-get")[-1].endswith(" golang-go")


def test_apt_that_fails_ends_it(machine: Machine) -> None:
    lacks(machine, "bison")
    machine.has("apt-get", "exit 100")
    done = machine.bootstrap()
    assert done.returncode == 1
    assert "Debian 12 or 13" in done.stderr
    assert not machine.calls("make")


def test_goes_on_where_dpkg_was_interrupted(machine: Machine) -> None:
    """apt-get would refuse to do anything."""
    lacks(machine, "bison")
    machine.has("apt-get", f'[ -z "$(ls {machine.dpkg}/updates)" ]')
    machine.has("dpkg", f"rm {machine.dpkg}/updates/*")
    (machine.bin / "rm").symlink_to("/bin/rm")
    (machine.dpkg / "updates/0003").touch()
    done = machine.bootstrap()
    assert done.returncode == 0, done.stderr
    assert "dpkg was interrupted" in done.stderr
    assert machine.calls("dpkg") == ["dpkg --configure -a"]
    # Only then: what else may be broken is not ours to mend.
    assert "--fix-broken" in machine.calls("apt-get")[-1]
    assert machine.bootstrap().returncode == 0
    assert len(machine.calls("dpkg")) == 1
    assert "--fix-broken" not in machine.calls("apt-get")[-1]


# The programs that the README's commands use and a minimal Debian lacks, with their packages.
PACKAGES = {
    "curl": "curl",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "make": "make",
    "python3": "python3",
    "ss": "iproute2",
    "sudo": "sudo",
}


def test_brings_what_the_readme_types(machine: Machine) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    lines = "\n".join(re.findall(r"^\$ (.*)", readme, re.MULTILINE))
    used = {package for name, package in PACKAGES.items() if re.search(rf"\b{name}\b", lines)}
    assert {"iproute2", "iperf3", "curl"} <= used
    # passt is what `guise run` itself starts without root.
    for package in {*used, "passt"}:
        lacks(machine, package)
        assert machine.bootstrap().returncode == 0
        assert machine.calls("apt-get")[-1].endswith(f" {package}")


def test_fetches_before_it_compiles(machine: Machine) -> None:
    """Without a network it ends at once, and has compiled nothing."""
    machine.has("make", '[ "$1" = all ]')
    done = machine.bootstrap("BUILD=x", "all")
    assert done.returncode == 1
    assert machine.calls("make") == ["make fetch BUILD=x"]
    assert "could not be fetched" in done.stderr and "nothing was compiled" in done.stderr


def test_ends_with_what_is_ready_and_what_to_type(machine: Machine) -> None:
    end = "bootstrap: guise is ready in {}; try: {}/guise run -- ip -br addr"
    assert machine.bootstrap().stderr.splitlines()[-1] == end.format("build", "build")
    there = machine.bootstrap("all", "BUILD=/tmp/b").stderr.splitlines()[-1]
    assert there == end.format("/tmp/b", "/tmp/b")
    # What make says of tests is the end of that.
    assert "ready" not in machine.bootstrap("check").stderr
    machine.has("make", '[ "$1" = fetch ]')
    failed = machine.bootstrap()
    assert failed.returncode == 1
    assert "ready" not in failed.stderr


def test_says_how_it_is_called(machine: Machine) -> None:
    lacks(machine, "bison")
    for asked in ("-h", "--help"):
        told = machine.bootstrap(asked)
        assert told.returncode == 0
        assert "usage: ./bootstrap" in told.stdout
        assert "  check: " in told.stdout
    assert not machine.calls("apt-get") and not machine.calls("make")


@pytest.mark.parametrize("wrong", ["--jobs=2", "-x", "chekc"])
def test_a_wrong_word_changes_nothing(machine: Machine, wrong: str) -> None:
    lacks(machine, "bison")
    done = machine.bootstrap("all", wrong)
    assert done.returncode == 2
    assert f" {wrong};" in done.stderr and "./bootstrap --help" in done.stderr
    assert not machine.calls("apt-get") and not machine.calls("make")


def test_what_make_knows_is_let_through(machine: Machine) -> None:
    words = ("-j2", "build/guise-kernel", "clean", "BUILD=build")
    assert machine.bootstrap(*words).returncode == 0
    assert machine.calls("make")[-1] == f"make {' '.join(words)}"


def until_told(path: Path) -> str:
    """A loop, which ends with the folder, too."""
    return f'until [ -e "{path}" ] || [ ! -d "{path.parent}" ]; do sleep 0.05; done'


def test_a_second_run_waits_for_the_first(machine: Machine, tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    lacks(machine, "bison")
    machine.has("apt-get", until_told(go_on))
    with machine.starts() as first:
        eventually(lambda: machine.calls("apt-get"), "the first one installs")
        with machine.starts() as second:
            wait_until_says(second, "another ./bootstrap works in this folder")
            assert len(machine.calls("apt-get")) == 1
            go_on.touch()
            for run in (first, second):
                assert "guise is ready" in run.finish().expect().errors


def test_what_apt_starts_keeps_nobody_waiting(machine: Machine, tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    lacks(machine, "bison")
    machine.has("apt-get", f"({until_told(go_on)}) >/dev/null 2>&1 &")
    assert machine.bootstrap().returncode == 0
    with machine.starts() as second:
        assert "another" not in second.finish().expect().errors
    go_on.touch()


def test_interrupted_says_how_to_go_on(machine: Machine, tmp_path: Path) -> None:
    # make may take it for an error.
    machine.has("make", f"trap 'exit 2' INT; {until_told(tmp_path / 'never')}")
    ours, its = os.openpty()
    with machine.starts(terminal=its) as process:
        eventually(lambda: machine.calls("make"), "make runs")
        os.write(ours, b"\x03")
        said = process.finish()
    os.close(ours)
    os.close(its)
    assert said.status == 128 + signal.SIGINT
    assert said.errors.splitlines()[-1].startswith("bootstrap: interrupted; the same command")


def test_what_is_fetched_suffices(tmp_path: Path) -> None:
    """The build's Go modules are there after `make fetch`, and go needs no network then."""
    ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}
    env = {key: value for key, value in os.environ.items() if key not in ours}
    asked = ["make/go", "env", "GOMODCACHE", "GOPROXY"]
    told = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
    cache, proxy = told.stdout.split()
    # The modules that this machine has; from the network only what it lacks.
    env["GOPROXY"] = f"file://{cache}/cache/download,{proxy}"
    env["GOMODCACHE"] = str(tmp_path)
    env["GOFLAGS"] = "-modcacherw"
    subprocess.run(["make", "fetch"], cwd=ROOT, env=env, check=True, capture_output=True)
    subprocess.run(
        ["make/go", "list", "-deps", "./..."],
        cwd=ROOT,
        env={**env, "GOPROXY": "off"},
        check=True,
        capture_output=True,
    )


# A kernel that "compiles" a hundred files, and then goes on when it is told to.
MAKE = """
for word; do
    case $word in
    O=*) out=${word#O=} ;;
    esac
done
case $* in
*allnoconfig)
    mkdir -p "$out" && cp "$KCONFIG_ALLCONFIG" "$out/.config" ;;
*)
    i=0
    while [ $i -lt 100 ]; do i=$((i + 1)); echo "  CC      file$i.o"; done
    until [ -e "$GO_ON" ]; do sleep 0.05; done
    exit 1 ;;
esac
"""


def test_progress_is_shown_while_the_kernel_compiles(tmp_path: Path, machine: Machine) -> None:
    """Also where awk is Debian's mawk, which reads a pipe in blocks."""
    machine.has("make", MAKE)
    checkout, tree = tmp_path / "guise", tmp_path / "tree"
    for name in ("linux/build.sh", "linux/configs", "include", "versions.env"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).symlink_to(ROOT / name)
    (tree / "arch").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    if mawk := shutil.which("mawk"):
        (machine.bin / "awk").symlink_to(mawk)
    environment = {
        "PATH": f"{machine.bin}:{os.environ['PATH']}",
        "KERNEL_SRC": str(tree),
        "XDG_CACHE_HOME": str(tmp_path),
        "GO_ON": str(tmp_path / "go_on"),
    }
    with Process([checkout / "linux/build.sh", tmp_path / "build"], env=environment) as build:
        wait_until_says(build, "KERNEL 100 files")
        (tmp_path / "go_on").touch()
        eventually(lambda: not build.running(), "the build ends")
