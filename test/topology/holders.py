# SPDX-License-Identifier: GPL-2.0-only
"""The two processes of a stack's holder: docs/architecture.md."""

from __future__ import annotations

from pathlib import Path

from topology.namespace import Namespace


def comm_of(pid: int) -> str:
    """What it is called; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def carriers_of(warden: int) -> list[int]:
    """One, or none where it has ended."""
    try:
        children = Path(f"/proc/{warden}/task/{warden}/children").read_text().split()
    except OSError:
        return []
    return [int(pid) for pid in children if comm_of(int(pid)) == "guise-carrier"]


def carrier_of(warden: int) -> int:
    (carrier,) = carriers_of(warden)
    return carrier


def wardens(net: Namespace) -> list[int]:
    """Those by which the holders in a namespace are known."""
    return [pid for pid in net.processes("guise-holder") if comm_of(pid) == "guise-holder"]
