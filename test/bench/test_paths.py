# SPDX-License-Identifier: GPL-2.0-only
"""bench/paths/run compares one path with two, guise with the host. What figures come is the
machine's to say."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from topology.process import run
from topology.twopaths import host_has_mptcp

RUN = Path(__file__).resolve().parents[2] / "bench/paths/run"
SIZES = ("64", "16384")


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid():
        pytest.skip("needs root, to make network namespaces")


@pytest.mark.slow
def test_table_csv_and_figure_have_each_kind_with_its_deviation(tmp_path: Path) -> None:
    """Two trials of each: with fewer there is no deviation."""
    flags = ["--trials", "2", "--seconds", "0.3", "--sizes", ",".join(SIZES), "--output", tmp_path]
    done = run([RUN, *map(str, flags)], seconds=110).expect()
    sides = [("guise", "1"), ("guise", "2"), ("host", "1")]
    if host_has_mptcp():
        sides.append(("host", "2"))
    else:
        assert "its kernel has no MPTCP" in done.errors
    expected = {
        (test, *side, size)
        for test in ("TCP_STREAM", "TCP_MAERTS")
        for side in sides
        for size in SIZES
    }
    with (tmp_path / "paths.csv").open() as source:
        rows = list(csv.DictReader(source))
    assert {(row["test"], row["side"], row["paths"], row["size"]) for row in rows} == expected
    for row in rows:
        assert row["trials"] == "2" and float(row["goodput"]) > 0, row
        assert float(row["goodput_deviation"]) > 0, row
        assert 0 < float(row["processors"]) <= 100, row
    assert len(done.text.splitlines()) == 1 + len(expected), done
    assert (tmp_path / "paths.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("flag", ["--sizes=65508", "--trials=0", "--rates=10", "--delays=1,-1"])
def test_a_flag_that_makes_no_sense_is_refused(flag: str) -> None:
    done = run([RUN, flag]).expect(2)
    assert flag.split("=")[0] in done.errors
