# SPDX-License-Identifier: GPL-2.0-only
"""The demo shows four stacks, each with three transfers, and leaves no namespace behind."""

import os
import re
import sys
from pathlib import Path

import pytest
from topology.process import Process
from topology.side import BUILD

DEMO = Path(__file__).resolve().parents[2] / "demo" / "run"
# "guise, bbr   curl -T   44.8   12.50   18"
ROW = re.compile(r"^(.+?, \w+) +(curl -T|iperf3|iperf3 -R) +([\d.]+) +([\d.]+) +(\d+)$", re.M)


@pytest.mark.timeout(300)
def test_demo(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root, to make network namespaces")
    environment = {"GUISE_BUILD": str(BUILD), "GUISE_RUNDIR": str(tmp_path / "run")}
    with Process([sys.executable, DEMO], env=environment) as demo:
        done = demo.finish(240).expect()
    rows = ROW.findall(done.text)
    assert len(rows) == 12, done
    stacks = [stack for stack, *_ in rows[::3]]
    assert stacks[1:] == ["guise, cubic", "guise, westwood", "guise, bbr"]
    assert stacks[0].startswith("host, ")
    assert all(float(goodput) > 0 for _, _, goodput, _, _ in rows), done
    left = [name for name in os.listdir("/run/netns") if name.endswith(f"-{demo.pid}")]
    assert not left, "the demo's namespaces are gone"
    left = os.listdir(tmp_path / "run") if (tmp_path / "run").exists() else []
    assert not left, "the demo's stacks are gone, and what they changed on the host"
