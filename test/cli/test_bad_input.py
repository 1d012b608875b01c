# SPDX-License-Identifier: GPL-2.0-only
"""What a user gets wrong is named, together with what would be valid; the exit status is 2, and
nothing on the host was touched."""

import os
import shutil
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Finished
from topology.side import GUISE, PYTHON, GuiseSide

# The flags, and words of the answer: what was wrong, and what would be right.
MISTAKES = [
    (["--congestion", "cubic"], ["--congestion", "--cc"]),
    (["--sysctls", "a=b"], ["--sysctls", "--sysctl"]),
    (["-q"], ["-q", "--verbose"]),
    (["--mode", "tunnel"], ["tunnel", "preload", "tun", "auto"]),
    (["--cc", "westwod"], ["westwod", "westwood"]),
    (["--cc", "tahoe"], ["tahoe", "cubic", "bbr", "westwood"]),
    (["--link", "vde"], ["vde", "tap", "none"]),
    (["--link", "tap:a-name-that-is-too-long"], ["a-name-that-is-too-long", "15"]),
    (["--link", "tap:fd=99"], ["99", "tap"]),
    (["--link", "tap,colour=red"], ["colour", "mac", "mtu", "offload"]),
    (["--link", "tap,mtu=20"], ["20", "68"]),
    (["--link", "tap,mac=01:02:03"], ["01:02:03", "02:00:00:00:00:01"]),
    (["--ip", "10.0.0.300/24"], ["10.0.0.300/24", "192.0.2.2/24"]),
    (["--ip", "10.0.0.2"], ["10.0.0.2", "/24"]),
    (["--ip", "eth7=10.0.0.2/24"], ["eth7", "eth0"]),
    (["--ip", "10.0.0.0/24"], ["10.0.0.0/24", "10.0.0.1"]),
    (["--gateway", "nowhere"], ["nowhere", "192.0.2.1"]),
    (["--ip", "10.9.0.2/24", "--gateway", "10.8.0.1"], ["10.8.0.1", "10.9.0.2/24"]),
    (["--dns", "resolver"], ["resolver", "192.0.2.53"]),
    (["--sysctl", "net.ipv4.tcp_sack"], ["net.ipv4.tcp_sack", "KEY=VALUE"]),
    (["--sysctl", "net.ipv4.tcp_sak=1"], ["net.ipv4.tcp_sak", "net.ipv4.tcp_sack"]),
    (["--sysctl", "net.ipv4.tcp_congestion_control=tahoe"], ["tcp_congestion_control", "tahoe"]),
    (["--netem", "delay 20"], ["delay", "20ms"]),
    (["--netem", "loss 120%"], ["120%", "100"]),
    (["--netem", "dely 20ms"], ["dely", "delay"]),
    (["--memory", "lots"], ["lots", "64M"]),
    (["--memory", "1M"], ["1M", "32M"]),
    (["--name", "a b"], ["a b", "letters"]),
    (["--offload", "maybe"], ["maybe", "on", "off"]),
]


def answer(guise: GuiseSide, *words: str) -> Finished:
    return guise.far.run(GUISE, *words, env=guise.environment())


@pytest.mark.parametrize(("flags", "named"), MISTAKES, ids=lambda words: " ".join(words))
def test_mistake_in_run(
    guise: GuiseSide, leftovers: Leftovers, flags: list[str], named: list[str]
) -> None:
    done = answer(guise, "run", *flags, "--", "echo", "never")
    assert done.status == 2, done
    assert done.stdout == b"", done
    for word in named:
        assert word in done.errors, f"{word!r} should be named: {done}"
    assert not leftovers.now()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["fly"], ["fly", "run"]),
        (["run"], ["CMD"]),
        (["path", "--delay", "20", "a", "b"], ["20", "20ms"]),
        (["path", "--loss", "0.2", "a", "b"], ["0.2", "0.2%"]),
        (["path", "--rate", "fast", "a", "b"], ["fast", "100mbit"]),
        (["path", "only-one"], ["two", "A B"]),
        (["path", "--delay", "1ms", "no-such-ns-a", "no-such-ns-b"], ["no-such-ns-a", "ip netns"]),
    ],
    ids=lambda words: " ".join(words),
)
def test_mistake_elsewhere(guise: GuiseSide, words: list[str], named: list[str]) -> None:
    done = answer(guise, *words)
    assert done.status == 2, done
    for word in named:
        assert word in done.errors, f"{word!r} should be named: {done}"


def unprivileged(*words: str) -> list[str]:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    return [*nobody, "--inh-caps=-all", "--bounding-set=-all", *words]


@pytest.fixture
def own_run_dir(tmp_path: Path) -> Path:
    """Where a user without privileges may write."""
    folder = tmp_path / "user"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    return folder


def as_nobody(far: Namespace, own_run_dir: Path, *words: str) -> Finished:
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    readable = far.run(*unprivileged("test", "-x", str(GUISE))).status == 0
    if not readable:
        pytest.skip(f"{GUISE} lies where only root may go")
    environment = {"GUISE_RUNDIR": str(own_run_dir / "run")}
    return far.run(*unprivileged(str(GUISE), *words), env=environment)


def test_missing_privilege_for_a_tap(
    far: Namespace, leftovers: Leftovers, own_run_dir: Path
) -> None:
    done = as_nobody(far, own_run_dir, "run", "--link", "tap", "--", "echo", "never")
    assert done.status == 2, done
    assert done.stdout == b"", done
    for word in ("CAP_NET_ADMIN", "sudo", "passt", "--link none", "guise setup"):
        assert word in done.errors, done
    assert not leftovers.now()


def test_without_a_default_route_passt_has_no_way(
    far: Namespace, leftovers: Leftovers, own_run_dir: Path
) -> None:
    done = as_nobody(far, own_run_dir, "run", "--", "echo", "never")
    assert (done.status, done.stdout) == (125, b""), done
    assert "default route" in done.errors and "--link none" in done.errors, done
    assert not leftovers.now()


def test_without_passt_nothing_runs_over_the_hosts_stack(
    far: Namespace, leftovers: Leftovers, own_run_dir: Path
) -> None:
    words = ["run", "--", "/bin/echo", "never"]
    command = ["env", "PATH=/nowhere", f"GUISE_RUNDIR={own_run_dir}/run", str(GUISE), *words]
    done = far.run(*unprivileged(*command))
    assert (done.status, done.stdout) == (125, b""), done
    for word in ("passt", "apt-get install passt", "guise setup", "--link none"):
        assert word in done.errors, done
    assert not leftovers.now()


def test_missing_privilege_for_a_path(
    far: Namespace, leftovers: Leftovers, own_run_dir: Path
) -> None:
    done = as_nobody(far, own_run_dir, "path", "--delay", "1ms", far.name, far.name + ":other")
    assert done.status == 2, done
    assert "CAP_SYS_ADMIN" in done.errors and "sudo" in done.errors, done
    assert not leftovers.now()


def test_a_stack_without_a_link_needs_no_privilege(
    far: Namespace, leftovers: Leftovers, own_run_dir: Path
) -> None:
    script = "import socket; socket.create_server(('127.0.0.1', 0))"
    words = ["run", "-v", "--link", "none", "--", PYTHON, "-c", script]
    done = as_nobody(far, own_run_dir, *words).expect()
    assert "0 sockets escaped" in done.errors
