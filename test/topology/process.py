# SPDX-License-Identifier: GPL-2.0-only
"""Programs that a test starts: each has a deadline, its output is kept, and none is left behind."""

from __future__ import annotations

import atexit
import fcntl
import os
import shlex
import signal
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Self, TypedDict, TypeVar, Unpack

# Seconds. No test measures time: this is only how long a hang may last.
DEADLINE = 60.0

Answer = TypeVar("Answer")


def eventually(
    question: Callable[[], Answer], what: str, seconds: float = DEADLINE, pause: float = 0.02
) -> Answer:
    """Asks again until the answer is true, and returns it."""
    end = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < end, f"not so within {seconds:g} s: {what}"
        time.sleep(pause)
    return answer


@dataclass(frozen=True)
class Finished:
    """How a program ended, and what it said."""

    command: str
    status: int  # as the shell's $?: 128 + n when signal n ended it
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def errors(self) -> str:
        return self.stderr.decode(errors="replace")

    def __str__(self) -> str:
        return (
            f"{self.command}\nended with status {self.status}\n"
            f"--- stdout\n{self.text[-4000:]}\n--- stderr\n{self.errors[-4000:]}"
        )

    def expect(self, status: int = 0) -> Self:
        assert self.status == status, f"expected status {status}: {self}"
        return self


class How(TypedDict, total=False):
    """What a program is given. A terminal becomes its stdin, and what controls its session: Ctrl-C
    is a byte to that."""

    stdin: int | IO[bytes] | bytes | None
    env: Mapping[str, str] | None  # beside the test's own
    cwd: str | os.PathLike[str] | None
    terminal: int | None


class Process:
    """A running program, leader of a session of its own. As a context, it ends with it."""

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        stdin: int | IO[bytes] | bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        terminal: int | None = None,
        inherit: Sequence[int] = (),
    ) -> None:
        self.command = shlex.join(os.fspath(word) for word in command)
        # Files, not pipes: a program may print as much as it likes while nothing reads it.
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        source: int | IO[bytes] = subprocess.DEVNULL
        if isinstance(stdin, bytes):
            source = tempfile.TemporaryFile()  # noqa: SIM115
            source.write(stdin)
            source.seek(0)
        elif terminal is not None:
            source = terminal
        elif stdin is not None:
            source = stdin
        self._popen = subprocess.Popen(
            [os.fspath(word) for word in command],
            stdin=source,
            stdout=self._stdout,
            stderr=self._stderr,
            env=None if env is None else {**os.environ, **env},
            cwd=cwd,
            pass_fds=inherit,
            start_new_session=True,
            preexec_fn=None if terminal is None else _control_stdin,
        )
        atexit.register(self.stop)  # whatever interrupts the test
        self.stdin = self._popen.stdin
        self.pid = self._popen.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        said = self.stop()
        if error is not None:
            error.add_note(f"meanwhile {said}")

    def running(self) -> bool:
        return self._popen.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def said(self) -> Finished:
        """What it said so far; its status is -1 while it runs."""
        status = self._popen.poll()
        if status is None:
            status = -1
        elif status < 0:
            status = 128 - status
        return Finished(self.command, status, _contents(self._stdout), _contents(self._stderr))

    def finish(self, seconds: float = DEADLINE) -> Finished:
        """Waits for the end that the program itself comes to."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            where = _where(self.pid)
            raise AssertionError(f"not done within {seconds:g} s {where}: {self.stop()}") from None
        return self.said()

    def stop(self) -> Finished:
        """Ends it, and what it started in its session, if it still runs."""
        if self.running():
            os.killpg(self.pid, signal.SIGTERM)
            try:
                self._popen.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self._popen.wait()
        atexit.unregister(self.stop)
        return self.said()


def run(
    command: Sequence[str | os.PathLike[str]], *, seconds: float = DEADLINE, **how: Unpack[How]
) -> Finished:
    """Runs a program to its end."""
    with Process(command, **how) as process:
        return process.finish(seconds)


def _control_stdin() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _contents(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _where(pid: int) -> str:
    """What the program waits for, as far as its host knows."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as wchan:
            return f"(waits in {wchan.read() or 'its program'})"
    except OSError:
        return ""
