# SPDX-License-Identifier: GPL-2.0-only
"""guise run is transparent: exit status, signals, stdin, stdout and working directory are the
program's own, whether guise has become the program or stays beside it (-v)."""

import signal
import subprocess
from pathlib import Path

import pytest
from topology.process import Finished
from topology.side import GUISE, PROOF, GuiseSide, proof, wait_until_says

WITH_AND_WITHOUT_PARENT = pytest.mark.parametrize("options", [[], ["-v"]], ids=["exec", "verbose"])


def run(
    guise: GuiseSide, options: list[str], *command: str, stdin: bytes | None = None
) -> Finished:
    with guise.start(*command, options=options, stdin=stdin) as process:
        return process.finish()


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_exit_status(guise: GuiseSide, options: list[str], status: int) -> None:
    assert run(guise, options, "sh", "-c", f"exit {status}").status == status


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
@pytest.mark.parametrize("name", ["TERM", "KILL", "INT", "SEGV"])
def test_death_by_a_signal(guise: GuiseSide, options: list[str], name: str) -> None:
    done = run(guise, options, "sh", "-c", f"kill -{name} $$")
    assert done.status == 128 + signal.Signals[f"SIG{name}"]


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
def test_a_shell_sees_the_same(guise: GuiseSide, options: list[str]) -> None:
    words = [str(word) for word in guise.words("sh", "-c", "kill -TERM $$", options=options)]
    script = '"$@"; echo "status $?"'
    done = guise.far.run("sh", "-c", script, "-", *words, env=guise.environment())
    assert done.text == "status 143\n"


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2", "INT"])
def test_signals_reach_the_program(guise: GuiseSide, options: list[str], name: str) -> None:
    script = f"trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.1; done"
    with guise.start("sh", "-c", script, options=options) as process:
        wait_until_says(process, "ready")
        process.signal(signal.Signals[f"SIG{name}"])
        done = process.finish()
    assert (done.status, done.text) == (3, f"ready\ngot {name}\n"), done


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
def test_stdin_and_stdout_are_the_programs(guise: GuiseSide, options: list[str]) -> None:
    text = bytes(range(256)) * 4096
    done = run(guise, options, "cat", stdin=text)
    assert (done.status, done.stdout) == (0, text)


@pytest.mark.also_without_root
def test_nothing_is_said_that_was_not_asked_for(guise: GuiseSide) -> None:
    done = run(guise, [], "sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


def test_verbose_adds_one_line_of_proof(guise: GuiseSide) -> None:
    done = run(guise, ["-v", "--cc", "westwood"], "sh", "-c", "echo out; echo err >&2")
    assert done.stdout == b"out\n"
    lines = [line for line in done.errors.splitlines() if "name server" not in line]
    assert lines[0] == "err" and len(lines) == 2 and PROOF.match(lines[1] + "\n"), done
    assert proof(done)["cc"] == "westwood"


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
def test_arguments_and_directory_are_kept(
    guise: GuiseSide, options: list[str], tmp_path: Path
) -> None:
    words = ["sh", "-c", 'pwd; printf "<%s>" "$@"', "-", "--cc", "a b", "", "-v"]
    with guise.start(*words, options=options, cwd=tmp_path) as process:
        done = process.finish()
    assert done.text == f"{tmp_path}\n<--cc><a b><><-v>"


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
def test_program_that_is_not_there(guise: GuiseSide, options: list[str]) -> None:
    for name in ("no-such-program", "/no/such/program"):
        done = run(guise, options, name)
        assert done.status == 127 and name in done.errors, done


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
def test_program_that_cannot_be_executed(
    guise: GuiseSide, options: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("echo never\n", encoding="ascii")
    file.chmod(0o644)
    for path in (file, tmp_path):
        done = run(guise, options, str(path))
        assert done.status == 126 and str(path) in done.errors, done


@pytest.mark.also_without_root
def test_a_second_run_beside_the_first(guise: GuiseSide) -> None:
    """Both as a user would start them: guise finds names and addresses for each."""
    words = [str(GUISE), "run", "-v", "--", "sh", "-c", "echo ready; read -r line; echo over"]
    environment = guise.environment()
    first = guise.far.start(*words, env=environment, stdin=subprocess.PIPE)
    with first, guise.far.start(*words, env=environment, stdin=subprocess.PIPE) as second:
        for process in (first, second):
            wait_until_says(process, "ready")
        taps = {name for name in guise.far.interfaces() if name.startswith("guise")}
        assert len(taps) == 2
        for process in (second, first):
            assert process.stdin
            process.stdin.write(b"go on\n")
            process.stdin.close()
            done = process.finish().expect()
            assert done.text == "ready\nover\n"
            assert proof(done)["escaped"] == "0"
