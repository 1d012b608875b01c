# SPDX-License-Identifier: GPL-2.0-only
"""Programs whose runtime handles stacks, memory and signals in its own way, on the host and on
guise: built with sanitizers, with coroutines on small stacks, and a JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from topology.process import Finished, run
from topology.side import BUILD, GUISE

HERE = Path(__file__).resolve().parent
PLAIN = BUILD / "test" / "host" / "conversation"


def on_both(*words: str | Path) -> Finished:
    """The same on the host and on guise, and nothing to complain of."""
    on_host = run(words).expect()
    on_guise = run([GUISE, "run", "--link", "none", "--", *words]).expect()
    assert (on_guise.stdout, on_guise.stderr) == (on_host.stdout, on_host.stderr)
    assert on_guise.errors == ""
    return on_guise


@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread"])
def test_a_program_built_with_a_sanitizer(tmp_path: Path, sanitizer: str) -> None:
    """With address, leaks are looked for at the exit as well."""
    program = tmp_path / sanitizer
    flags = ["-D_GNU_SOURCE", "-g", "-O1", "-pthread", f"-fsanitize={sanitizer}"]
    subprocess.run(["cc", *flags, "-o", program, HERE / "conversation.c"], check=True)
    assert on_both(program).text == "said 7120 bytes\n"


def test_a_forked_child_looks_for_its_leaks(tmp_path: Path) -> None:
    """It traces itself then, as its parent does."""
    source, program = tmp_path / "forks.c", tmp_path / "forks"
    source.write_text(
        "#include <stdlib.h>\n#include <sys/socket.h>\n#include <sys/wait.h>\n"
        "#include <unistd.h>\n"
        "int main(void) {\n"
        "  int status = -1, fd = socket(AF_INET, SOCK_DGRAM, 0);\n"
        "  if (!fork()) exit(fd < 0 ? 4 : 3);\n"
        "  wait(&status);\n"
        "  return status == 3 << 8 ? 0 : 1;\n"
        "}\n",
        "ascii",
    )
    subprocess.run(["cc", "-fsanitize=address", "-o", program, source], check=True)
    on_both(program)


def test_coroutines_on_small_stacks() -> None:
    assert on_both(PLAIN, "coroutines").text == on_both(PLAIN).text == "said 7120 bytes\n"


@pytest.mark.slow
def test_a_jvm_serves_itself() -> None:
    """Its handler of SIGSEGV finds null pointers meanwhile."""
    source = HERE.parent / "program" / "Conversation.java"
    assert on_both("java", source).text == "20 answers right, 100000 nulls found\n"
