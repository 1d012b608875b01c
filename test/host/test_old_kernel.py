# SPDX-License-Identifier: GPL-2.0-only
"""Hosts from Linux 4.19 on: every newer facility of the host's kernel may be missing (ENOSYS), or
be refused by a container's seccomp profile (EPERM), one at a time and all at once, and a program
runs on guise as before. deny.c stands between guise and the host's kernel."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from topology.content import Content
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Process, run
from topology.side import DENY, GUISE, GuiseSide, wait_until_says

ROOT = Path(__file__).resolve().parents[2]

# The flags of mmap and memfd_create that are newer than their calls: MAP_FIXED_NOREPLACE (4.17),
# MFD_NOEXEC_SEAL and MFD_EXEC (6.3).
FIXED_NOREPLACE = "mmap:3:100000"
MEMFD_FLAGS = "memfd_create:1:18"
CALLS = (
    "clone3",
    "close_range",
    "epoll_pwait2",
    "faccessat2",
    "fchmodat2",
    "futex_waitv",
    "io_uring_setup",
    "openat2",
    "pidfd_getfd",
    "pidfd_open",
    "pidfd_send_signal",
    "rseq",
    "statx",
)
# libc asks for threads with clone3 first, and takes only ENOSYS for an answer: with EPERM no
# program on such a host starts a thread, guise or not.
LIBC_NEEDS_ENOSYS = ("clone3",)


def rules(error: str) -> list[str]:
    answers = [f"{call}={'ENOSYS' if call in LIBC_NEEDS_ENOSYS else error}" for call in CALLS]
    flag_error = "EINVAL" if error == "ENOSYS" else error
    return [*answers, f"{FIXED_NOREPLACE}={flag_error}", f"{MEMFD_FLAGS}={flag_error}"]


ONE_BY_ONE = sorted({rule for error in ("ENOSYS", "EPERM") for rule in rules(error)})
ALL = {error: rules(error) for error in ("ENOSYS", "EPERM")}


def download(guise: GuiseSide, content: Content, denied: list[str]) -> str:
    """curl on guise, on such a host; the digest of what it got."""
    url = f"http://{guise.peer}:{content.port}/blob"
    words = [DENY, *denied, "--", *guise.words("curl", "-sS", url)]
    done = guise.far.run(*words, env=guise.environment()).expect()
    assert done.errors == ""
    return hashlib.sha256(done.stdout).hexdigest()


@pytest.mark.parametrize("rule", ONE_BY_ONE)
def test_curl_on_a_host_that_lacks_one_facility(
    guise: GuiseSide, content: Content, rule: str
) -> None:
    assert download(guise, content, [rule]) == content.sha256


@pytest.mark.parametrize("error", ALL)
def test_curl_on_a_host_that_lacks_them_all(guise: GuiseSide, content: Content, error: str) -> None:
    assert download(guise, content, ALL[error]) == content.sha256


# A child behind libc's back, which keeps its parent's channel to the holder open: only the
# process's own end tells that the parent is gone.
PARENT = """
import ctypes, os, platform, signal, socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(b"here")
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
libc = ctypes.CDLL(None)
if libc.syscall(clone, signal.SIGCHLD, 0, 0, 0, 0) == 0:
    s.close()  # its copy would keep the connection
    while True:
        libc.pause()
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_a_killed_process_is_noticed_without_pidfds(
    guise: GuiseSide, far: Namespace, leftovers: Leftovers, error: str
) -> None:
    """Its sockets are closed, though another process still holds its channel to the holder."""
    with far.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        program = ("/usr/bin/python3", "-c", PARENT, guise.peer, port)
        words = [DENY, f"pidfd_open={error}", "--", *guise.words(*program)]
        with far.start(*words, env=guise.environment()) as process:
            wait_until_says(process, "ready")
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                assert connection.recv(100) == b"here"
                process.signal(signal.SIGKILL)
                process.finish()
                try:
                    assert connection.recv(100) == b""
                except ConnectionResetError:
                    pass
                finally:
                    os.killpg(process.pid, signal.SIGKILL)
    leftovers.wait_until_none()


@pytest.mark.parametrize(
    "rule",
    ["fork=ENOSYS", "mmap", "mmap=EWHAT", "mmap:3=ENOSYS", "mmap:6:1=ENOSYS", "mmap3=ENOSYS"],
)
def test_wrong_rules_are_refused(rule: str) -> None:
    done = run([DENY, rule, "--", "true"]).expect(2)
    assert "known calls are clone3 " in done.errors


def test_a_denied_call_is_denied() -> None:
    """A condition of the other tests."""
    code = "import os, errno\ntry: os.pidfd_open(1)\nexcept OSError as e: print(e.errno)"
    done = run([DENY, "pidfd_open=EPERM", "--", "/usr/bin/python3", "-c", code]).expect()
    assert done.text == "1\n"
    code = "import os\ntry: os.memfd_create('x', 8)\nexcept OSError as e: print(e.errno)\n"
    code += "os.close(os.memfd_create('x', 1))"
    done = run([DENY, f"{MEMFD_FLAGS}=EINVAL", "--", "/usr/bin/python3", "-c", code]).expect()
    assert done.text == "22\n"
    code = "import socket\nsocket.socket()\n"
    code += "try: socket.socket(16, 3, 12)\nexcept OSError as e: print(e.errno)"
    denied = "socket:2==c=EPROTONOSUPPORT"
    done = run([DENY, denied, "--", "/usr/bin/python3", "-c", code]).expect()
    assert done.text == "93\n"


def test_memory_files_that_could_be_executed_may_be_refused(tmp_path: Path) -> None:
    """As by vm.memfd_noexec=2, where only MFD_NOEXEC_SEAL helps: the memory of the stack and of a
    stream's buffers, and the program's own /etc/resolv.conf."""
    denied = [f"memfd_create:1=={flags}=EACCES" for flags in range(4)]
    ours, its = socket.socketpair()
    with ours, its:
        link = ["--link", f"stream:fd={its.fileno()}", "--ip", "192.0.2.2/24"]
        guise = [str(GUISE), "run", *link, "--dns", "192.0.2.53", "--", "cat", "/etc/resolv.conf"]
        with Process(
            [DENY, *denied, "--", *guise],
            env={"GUISE_RUNDIR": str(tmp_path)},
            inherit=[its.fileno()],
        ) as process:
            done = process.finish().expect()
    servers = [line for line in done.text.splitlines() if line.startswith("nameserver")]
    assert servers == ["nameserver 192.0.2.53"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("error", ALL)
def test_the_tests_of_the_region_pass_on_such_a_host(error: str) -> None:
    words = [str(DENY), *ALL[error], "--", sys.executable, "-m", "pytest", "test/region"]
    done = subprocess.run(
        [*words, "-q", "-m", "not slow and not soak"], cwd=ROOT, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_a_stack_starts_and_ends_without_a_link_on_such_a_host() -> None:
    for error in ALL:
        words = (GUISE, "run", "--link", "none", "--", "ip", "-br", "link")
        assert "lo" in run([DENY, *ALL[error], "--", *words]).expect().text
