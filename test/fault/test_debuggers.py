# SPDX-License-Identifier: GPL-2.0-only
"""Programs on a stack that trace others, or are traced, or stopped: the holder, which traces all
members, does not prevent that."""

from __future__ import annotations

import os
import pty
import shutil
import signal
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import Process, eventually, run
from topology.side import BUILD, GUISE, PYTHON, program, wait_until_says

KERNEL = BUILD / "guise-kernel"
INIT = BUILD / "test" / "fault" / "init"
ON_GUISE: tuple[Word, ...] = (GUISE, "run", "--link", "none", "--")
WAIT = (PYTHON, program("hold.py"), "wait", "5000")
SOCKETS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
near.sendall(b"x" * 1000)
print(len(far.recv(1000, socket.MSG_WAITALL)))
"""


def tracer_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(text.split("TracerPid:")[1].split()[0])


def test_strace_traces_a_program_and_its_children() -> None:
    words = ["strace", "-f", "-e", "trace=exit_group", PYTHON, "-c", SOCKETS]
    done = run([*ON_GUISE, *words]).expect()
    assert done.text == "1000\n"
    assert "exited with 0" in done.errors, done
    assert "not permitted" not in done.errors, done


@pytest.mark.parametrize("how", ["memory", "instruction", "trap", "thread"])
def test_a_fault_ends_pid_1_of_a_pid_namespace(how: str) -> None:
    """The host's kernel keeps signals from it while it is traced."""
    on_host = run([INIT, how]).expect().text
    assert on_host.startswith("not traced\nstatus "), on_host
    on_guise = run([*ON_GUISE, INIT, how]).expect().text
    assert on_guise == on_host.replace("not traced", "traced")


def test_gdb_runs_a_program() -> None:
    words = ["gdb", "-q", "-batch", "-ex", "run", "--args", PYTHON, "-c", SOCKETS]
    done = run([*ON_GUISE, *words]).expect()
    assert "1000\n" in done.text, done
    assert "exited normally" in done.text, done


def test_who_may_not_attach_finds_what_to_do() -> None:
    """By the command line of what traces the process, as ps -eLf shows it; and a debugger that is
    on a stack itself, another one, says it."""
    with Process([*ON_GUISE, *WAIT]) as process:
        wait_until_says(process, "ready")
        tracer = tracer_of(process.pid)  # a thread
        lines = run(["ps", "-wweLo", "lwp=,args="]).expect().text.splitlines()
        [args] = [line for line in lines if line.split()[0] == str(tracer)]
        assert "guise detach PID" in args, args
        attach: list[Word] = ["strace", "-p", str(process.pid)]
        from_another = run([*ON_GUISE, *attach])
        assert "not permitted" in from_another.errors, from_another
        said = f"guise: strace: process {process.pid} is traced by the holder of its stack"
        assert said in from_another.errors, from_another
        assert f"guise detach {process.pid} lets go of it" in from_another.errors, from_another


def test_a_running_program_is_let_go_for_a_debugger() -> None:
    with Process([*ON_GUISE, *WAIT]) as process:
        wait_until_says(process, "ready")
        pid = process.pid  # guise run becomes the program
        assert tracer_of(pid)
        attach = ["strace", "-p", str(pid), "-e", "trace=none"]
        assert "not permitted" in run(attach).errors
        done = run([GUISE, "detach", str(pid)]).expect()
        assert "the stack is lost" in done.errors, done
        assert tracer_of(pid) == 0
        with Process(attach) as strace:
            eventually(lambda: tracer_of(pid), "strace has attached")
            strace.signal(signal.SIGINT)
            strace.finish()
        again = run([GUISE, "detach", str(pid)])
        assert again.status == 2 and "is not traced" in again.errors, again


def test_detach_of_who_is_on_no_stack_is_refused() -> None:
    done = run([GUISE, "detach", str(os.getpid())])
    assert done.status == 2 and "on none of your stacks" in done.errors, done
    done = run([GUISE, "detach", "x"])
    assert done.status == 2 and "expected guise detach PID" in done.errors, done


def test_ctrl_z_fg_and_bg() -> None:
    """In a shell with job control, itself on the stack."""
    keyboard, screen = pty.openpty()
    words: list[Word] = [*ON_GUISE, "bash", "--norc", "--noprofile", "-i"]
    with (
        open(keyboard, "wb", buffering=0) as keys,
        open(screen, "rb", buffering=0) as tty,
        Process(words, terminal=tty.fileno(), env={"PS1": "$ "}) as shell,
    ):

        def types(text: bytes) -> None:
            keys.write(text)

        def shows(what: str) -> None:
            eventually(lambda: what in shell.said().text + shell.said().errors, what)

        types(f"{' '.join(WAIT)}\n".encode())
        shows("ready")
        types(b"\x1a")
        shows("Stopped")
        types(b"bg; echo running $(jobs -r | wc -l)\n")
        shows("running 1")
        types(b"kill -STOP %1; until jobs -s | grep -q .; do :; done\n")
        types(b"echo stopped $(jobs -s | wc -l)\n")
        shows("stopped 1")
        shell_group = os.tcgetpgrp(keyboard)
        types(b"fg\n")
        eventually(lambda: os.tcgetpgrp(keyboard) != shell_group, "a job in the foreground")
        types(b"\x03")
        types(b"echo status $?\n")
        shows("status 130")
        types(b"exit\n")
        shell.finish()


@pytest.mark.parametrize("where", [(), ON_GUISE], ids=["host", "guise"])
def test_waitpid_sees_stops_and_ends_as_on_the_host(where: tuple[Word, ...]) -> None:
    script = """
import os, signal, time
hear, say = os.pipe()
pid = os.fork()
if not pid:
    import socket
    pair = socket.create_server(("127.0.0.1", 0))
    os.write(say, b"x")
    while True:
        time.sleep(0.01)
os.close(say)
os.read(hear, 1)
def change(number, flags):
    os.kill(pid, number)
    _, status = os.waitpid(pid, flags)
    print(os.WIFSTOPPED(status), os.WIFCONTINUED(status), os.WIFSIGNALED(status), status)
change(signal.SIGSTOP, os.WUNTRACED)
print(os.waitpid(pid, os.WNOHANG | os.WUNTRACED))
change(signal.SIGCONT, os.WCONTINUED)
change(signal.SIGUSR1, 0)
"""
    done = run([*where, PYTHON, "-c", script]).expect()
    assert done.text.splitlines() == [
        "True False False 4991",
        "(0, 0)",
        "False True False 65535",
        "False False True 10",
    ]


def test_a_setuid_program_gets_its_privilege(tmp_path: Path) -> None:
    """Executed by a traced program of a user, directly and by search, by a child, and by spawn.
    guise is not in it, and that is said once."""
    if os.geteuid():
        pytest.skip("needs root, to make a setuid program")
    folder = tmp_path / "bin"
    folder.mkdir(mode=0o755)
    who = folder / "who"
    shutil.copy("/usr/bin/id", who)
    who.chmod(0o4755)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    path = f"{folder}:{os.environ['PATH']}"
    env = {"HOME": str(home), "PATH": path}
    users_env = env | {"GUISE_RUNDIR": str(home / "run")}
    if run([*user, "test", "-x", GUISE, "-a", "-r", KERNEL]).status:
        pytest.skip(f"{GUISE} lies where only root may go")
    if run([*user, who, "-u"]).expect().text != "0\n":
        pytest.skip(f"{tmp_path} is mounted nosuid")
    spawn = (
        "import os, subprocess\n"
        "for _ in (1, 2): os.waitpid(os.posix_spawnp('who', ['who', '-u'], os.environ), 0)\n"
        "subprocess.run(['who', '-u'])"
    )
    script = f'{who} -u; who -u; {PYTHON} -c "{spawn}"; exec {who} -u'
    done = run([*user, *ON_GUISE, "sh", "-c", script], env=users_env).expect()
    assert done.text == "0\n" * 6, done
    said = f"{who} gains privileges when it starts, so guise is not loaded into it"
    assert done.errors.count(said) == len(done.errors.splitlines()) == 1, done
    as_root = run([*ON_GUISE, "sh", "-c", script], env=env).expect()
    assert as_root.text == "0\n" * 6 and not as_root.errors, as_root
