# SPDX-License-Identifier: GPL-2.0-only
"""Debian's ping, so that no answer is missed because it is late, and none that is lost is made up
for. For the last one it waits no longer than for the others, whatever -W says. With -w it goes on
asking until it has as many answers as -c says: what is lost then shows in their numbers."""

import re

from topology.process import Finished

PATIENT = ["-n", "-w", "50"]


def numbers(done: Finished) -> list[str]:
    """Of the answers, beginning with "1"."""
    return re.findall(r"bytes from .*icmp_seq=(\d+)", done.expect().text)
