# SPDX-License-Identifier: GPL-2.0-only
"""guise bench reports what docs/benchmarks.md says. The figures depend on the machine: no test
checks a floor; the bench itself reports whether each is kept."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from topology.process import run
from topology.side import GUISE
from topology.twopaths import host_has_mptcp

FEW = ["getppid", "create-ms", "lo-bulk-1thread"]


def listed() -> dict[str, str]:
    """The names and their units."""
    lines = run([GUISE, "bench", "--list"]).expect().text.splitlines()
    return {line.split()[0]: line.split()[1] for line in lines}


def test_json_has_the_form_that_is_documented() -> None:
    report = json.loads(run([GUISE, "bench", "--json", "--runs", "2", *FEW]).expect().text)
    assert report.keys() == {"version", "results", "skipped"}
    assert report["version"] == 1 and report["skipped"] == []
    assert [result["name"] for result in report["results"]] == FEW
    for result in report["results"]:
        assert result.keys() == {"name", "unit", "guise", "host", "ratio", "runs"}
        assert result["unit"] == listed()[result["name"]]
        assert result["runs"] == 2
        assert result["guise"] > 0
        if result["name"] == "create-ms":
            assert result["host"] is None and result["ratio"] is None
        else:
            ratio = result["guise"] / result["host"]
            assert result["ratio"] == pytest.approx(ratio, rel=1e-3)


def test_hook_and_connections_are_measured_beside_the_host() -> None:
    names = ["hook-ns", "connections", "tap-connections", "idle-10k"]
    report = json.loads(run([GUISE, "bench", "--json", "--runs", "1", *names]).expect().text)
    if os.geteuid():
        assert [skip["name"] for skip in report["skipped"]] == ["tap-connections"]
        names.remove("tap-connections")
    assert [result["name"] for result in report["results"]] == names
    for result in report["results"]:
        assert result["guise"] > 0 and result["host"] > 0, result


def test_what_cannot_run_is_listed_with_its_reason() -> None:
    if os.geteuid():
        pytest.skip("needs root, to become somebody who may not make namespaces")
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "--"]
    done = run([*nobody, GUISE, "bench", "--json", "--runs", "1", "tap-rr"]).expect()
    assert json.loads(done.text) == {
        "version": 1,
        "results": [],
        "skipped": [{"name": "tap-rr", "reason": "needs root, to make network namespaces"}],
    }


def test_it_says_itself_whether_a_floor_is_kept() -> None:
    text = run([GUISE, "bench", "--runs", "1", *FEW]).expect().text
    floors = {"getppid": "<=", "create-ms": "<=", "lo-bulk-1thread": ">="}
    for name, sign in floors.items():
        found = re.search(
            rf"^{name} +(\S+) +\S+  (\S+) +(\S+)  (within|MISSES) {sign} (\S+)", text, re.M
        )
        assert found, text
        figure = float(found[1] if name == "create-ms" else found[3])
        # The table is rounded: if the figure is very near the floor, either word may be right.
        if abs(figure - float(found[5])) > 0.01:
            kept = figure < float(found[5]) if sign == "<=" else figure > float(found[5])
            assert found[4] == ("within" if kept else "MISSES"), text


def test_process_trees_are_measured_beside_the_host() -> None:
    names = ["join", "fork", "proc-rr", "proc-bulk", "mixed-rr-4", "mixed-rr-64", "accept-rate"]
    names[2:2] = [f"call-rate-{processes}" for processes in (1, 2, 4, 16)]
    report = json.loads(run([GUISE, "bench", "--json", "--runs", "1", *names]).expect().text)
    assert [result["name"] for result in report["results"]] == names
    for result in report["results"]:
        assert result["guise"] > 0 and result["host"] > 0, result


def test_served_programs_are_measured_beside_the_host() -> None:
    names = ["served-getppid", "served-rr", "served-bulk", "served-connections"]
    report = json.loads(run([GUISE, "bench", "--json", "--runs", "1", *names]).expect().text)
    assert [result["name"] for result in report["results"]] == names
    for result in report["results"]:
        assert result["guise"] > 0 and result["host"] > 0, result


def test_what_takes_the_preload_library_is_not_measured_without() -> None:
    done = run([GUISE, "bench", "--json", "--api", "--runs", "1", "accept-rate", "fork", "join"])
    report = json.loads(done.expect().text)
    assert report["results"] == []
    assert {skip["reason"] for skip in report["skipped"]} == {
        "needs the preload library: libguise alone does not do this"
    }


@pytest.mark.timeout(300)
def test_programs_that_cannot_be_preloaded_are_measured_beside_the_host_and_others(
    tmp_path: Path,
) -> None:
    """The machine may lack the others, and not every run with Debian 12's pasta succeeds."""
    if os.geteuid():
        pytest.skip("needs root, to make network namespaces")
    names = ["tun-rr", "tun-bulk"]
    env = {"GUISE_RUNDIR": str(tmp_path / "run")}
    done = run([GUISE, "bench", "--json", "--runs", "1", *names], env=env, seconds=240)
    report = json.loads(done.expect().text)
    assert [result["name"] for result in report["results"]] == names
    for result in report["results"]:
        assert result["guise"] > 0 and result["host"] > 0, result
        assert result["others"].keys() == {"pasta", "slirp4netns"}
        for other, value in result["others"].items():
            assert value is None or value > 0, result
            if other == "slirp4netns" and shutil.which(other):
                assert value is not None, result


def test_two_paths_are_measured_beside_the_host() -> None:
    report = json.loads(run([GUISE, "bench", "--json", "--runs", "1", "mptcp-two-paths"]).text)
    (result,) = report["results"]
    assert 0 < result["guise"] < 1.2, result
    if os.geteuid() or not host_has_mptcp():
        assert result["host"] is None and result["no_host"], result
    else:
        assert 0 < result["host"] < 1.2, result


def test_a_host_without_mptcp_is_not_measured() -> None:
    """A file system covers what says that it has it."""
    if os.geteuid() or not host_has_mptcp():
        pytest.skip("needs root, to cover a folder, and a host that has MPTCP")
    bench = f"{GUISE} bench --json --runs 1 mptcp-two-paths"
    cover = f"mount -t tmpfs none /proc/sys/net/mptcp && exec {bench}"
    (result,) = json.loads(run(["unshare", "-m", "sh", "-c", cover]).expect().text)["results"]
    assert result["guise"] > 0 and result["host"] is None and result["ratio"] is None
    assert result["no_host"] == "the host's kernel has no MPTCP"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_benchmark_runs() -> None:
    report = json.loads(run([GUISE, "bench", "--json", "--runs", "1"], seconds=500).expect().text)
    measured = [result["name"] for result in report["results"]]
    assert measured + [skip["name"] for skip in report["skipped"]] == [*listed()]
    assert not report["skipped"] or os.geteuid()
