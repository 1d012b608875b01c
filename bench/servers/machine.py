# SPDX-License-Identifier: GPL-2.0-only
"""Whether the machine itself stood still. A virtual machine may be stopped as a whole for seconds,
by who has it, and what was measured then is wrong, on either side. A thread of the driver, which
does nothing else, sees it: it sleeps much longer than it wanted to."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

PAUSE_SECONDS = 0.05
STILL_SECONDS = 1.0  # not by other load: who sleeps most of the time is let run in less


@contextlib.contextmanager
def watched() -> Iterator[list[float]]:
    """The times for which it stood still, while the block runs."""
    times: list[float] = []
    end = threading.Event()

    def watch() -> None:
        last = time.monotonic()
        while True:
            done = end.wait(PAUSE_SECONDS)
            now = time.monotonic()
            if now - last > STILL_SECONDS:
                times.append(now - last)
            if done:
                return
            last = now

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield times
    finally:
        end.set()
        thread.join()
