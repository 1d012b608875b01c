# SPDX-License-Identifier: GPL-2.0-only
"""Processes that end with the one that started them.

Whoever starts one ends it: SIGTERM (or what the program takes for it), and SIGKILL to its whole
session after a while. A process also gets a signal from the kernel when its parent is gone, however
that came about. And the driver adopts what lost its parent (PR_SET_CHILD_SUBREAPER), so that it
finds what is left of a run: a server's children in sessions of their own, or guise's holder.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
END_SECONDS = 10

_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Running:
    """A process that is the leader of a session."""

    def __init__(self, popen: subprocess.Popen[str], signal: signal.Signals) -> None:
        self._popen = popen
        self._signal = signal

    @property
    def pid(self) -> int:
        return self._popen.pid

    def lines(self) -> Iterator[str]:
        assert self._popen.stdout
        return iter(self._popen.stdout)

    def status(self) -> int | None:
        return self._popen.poll()

    def wait(self, seconds: float = END_SECONDS) -> int:
        return self._popen.wait(seconds)

    def end(self) -> None:
        if self._popen.poll() is not None:
            return
        self._popen.send_signal(self._signal)
        try:
            self._popen.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()


@contextlib.contextmanager
def running(
    words: Sequence[str],
    *,
    stdout: int | IO[str] | None = None,
    stderr: int | IO[str] | None = None,
    env: Mapping[str, str] | None = None,
    ended_by: signal.Signals = signal.SIGTERM,
) -> Iterator[Running]:
    """The program, until the block ends."""
    popen = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        env={**os.environ, **(env or {})},
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )
    process = Running(popen, ended_by)
    try:
        yield process
    finally:
        process.end()
        if popen.stdout:
            popen.stdout.close()


def adopt_orphans() -> None:
    if _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in listed.split()]


def end_orphans(seconds: float) -> None:
    """Waits so long for the processes that were adopted, and kills those that are left. No process
    may be running() meanwhile."""
    end = time.monotonic() + seconds
    while children := _children():
        if time.monotonic() >= end:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)
