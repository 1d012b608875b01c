# SPDX-License-Identifier: GPL-2.0-only
"""The limit of file sizes (ulimit -f): a stack is a file in memory, and counts."""

from __future__ import annotations

import pytest
from topology.process import Finished, run
from topology.side import GUISE, PYTHON

KIB = 1024


def limited(limit: str) -> Finished:
    """A run whose program says which limit it has itself."""
    program = ["sh", "-c", "ulimit -Sf; ulimit -Hf"]
    return run(["prlimit", f"--fsize={limit}", GUISE, "run", "--link", "none", "--", *program])


def test_a_limit_below_the_stacks_size_is_named() -> None:
    done = limited(f"{1000 * KIB}")
    assert (done.status, done.stdout) == (125, b""), done
    for word in ("the limit of file sizes is 1000 KiB", "256 MiB of memory", "ulimit -f"):
        assert word in done.errors, done


def test_a_soft_limit_is_the_programs_alone() -> None:
    done = limited(f"{1000 * KIB}:unlimited").expect()
    assert done.text.split() == ["2000", "unlimited"], done  # in blocks of 512 bytes


@pytest.mark.parametrize("limit", ["0", "0:unlimited"])
def test_no_size_at_all_is_an_error_of_guise_and_not_its_death(limit: str) -> None:
    """Its output goes through a pipe: it could not write it to a file."""
    guise = f"prlimit --fsize={limit} {GUISE} run --link none -- echo never"
    done = run(["bash", "-o", "pipefail", "-c", f"{guise} 2>&1 | cat"])
    assert done.status == 125 and "never" not in done.text, done
    assert "ulimit -f" in done.text and len(done.text.splitlines()) <= 2, done


CONF = "nameserver 192.0.2.53\n" + "# as long as it may be\n" * 100
READ = "print(open('/etc/resolv.conf').read(), end='')"


def limited_inside(limit: int, variable: str, *program: str) -> Finished:
    """A program on a stack that gives itself the limit. Its words go by a pipe, too."""
    line = f'(ulimit -f {limit}; exec "$@") | cat'
    words = ["env", variable, "sh", "-c", line, "sh", *program]
    return run([GUISE, "run", "--link", "none", "--", *words]).expect()


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("reader", [["cat", "/etc/resolv.conf"], [PYTHON, "-c", READ]])
def test_resolv_conf_is_read_whatever_the_limit_is(limit: int, reader: list[str]) -> None:
    """guise writes its text into memory. Python, which ignores the signal, had the host's."""
    assert limited_inside(limit, f"GUISE_RESOLV_CONF={CONF}", *reader).text == CONF


def test_names_are_found_whatever_the_limit_is() -> None:
    hosts = "GUISE_HOSTS=192.0.2.7 one.guise.test"
    done = limited_inside(0, hosts, "getent", "hosts", "one.guise.test")
    assert done.text.split() == ["192.0.2.7", "one.guise.test"]
