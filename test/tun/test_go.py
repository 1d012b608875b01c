# SPDX-License-Identifier: GPL-2.0-only
"""The tests of Go's own packages net and net/http, linked statically, in --mode tun: what passes in
a plain namespace of the host passes there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from topology.namespace import Namespace, Word
from topology.side import GUISE

GO = Path(__file__).resolve().parents[2] / "make" / "go"
RESULT = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("package", ["net", "net/http"])
def test_tests_of_go_pass_as_on_the_host(far: Namespace, tmp_path: Path, package: str) -> None:
    program = tmp_path / "go.test"
    build = [str(GO), "test", "-c", "-o", str(program), package]
    subprocess.run(build, check=True, env=os.environ | {"CGO_ENABLED": "0"})
    root = subprocess.run([str(GO), "env", "GOROOT"], check=True, capture_output=True, text=True)
    words: list[Word] = [program, "-test.short", "-test.v"]
    guise: list[Word] = [GUISE, "run", "--link", "none", "--mode", "tun", "--", *words]
    env = {"GUISE_RUNDIR": str(tmp_path / "run")}
    results = []
    for command in (words, guise):
        folder = Path(root.stdout.strip()) / "src" / package
        done = far.run(*command, cwd=folder, env=env, seconds=600)
        results.append({name: result for result, name in RESULT.findall(done.text)})
    on_host, on_guise = results
    assert len(on_host) > 400
    assert on_guise == on_host
