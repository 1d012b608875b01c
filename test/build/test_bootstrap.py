# SPDX-License-Identifier: GPL-2.0-only
"""bootstrap takes a machine that has nothing to a build, and touches the machine only as far as
it must: it asks for root only when a package is missing, and says which and why."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Machine:
    """A PATH that holds a few tools and what the test says, with which bootstrap runs."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "log"
        self.log.touch()
        for tool in ("sh", "dirname", "env"):
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
            [ROOT / "bootstrap", *arguments],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
        )

    def calls(self, name: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(f"{name} ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.has("make", "")
    machine.has("go", "")
    machine.has("dpkg-query", "printf installed")
    machine.has("id", "echo 1000")
    machine.has("sudo", 'exec "$@"')
    machine.has("apt-get", "")
    return machine


def lacks(machine: Machine, package: str) -> None:
    machine.has("dpkg-query", f'for last; do :; done; [ "$last" = {package} ] || printf installed')


def test_asks_for_nothing_when_nothing_is_missing(machine: Machine) -> None:
    assert machine.bootstrap("check", "V=1").returncode == 0
    assert not machine.calls("sudo")
    assert not machine.calls("apt-get")
    assert machine.calls("make") == ["make check V=1"]


def test_installs_what_is_missing_and_says_why_it_needs_root(machine: Machine) -> None:
    lacks(machine, "bison")
    done = machine.bootstrap()
    assert done.returncode == 0
    assert "missing: bison" in done.stderr
    assert "needs root" in done.stderr and "password" in done.stderr
    assert machine.calls("apt-get")[-1].endswith("--no-install-recommends bison")
    assert len(machine.calls("sudo")) == 2
    assert machine.calls("make") == ["make "]


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
