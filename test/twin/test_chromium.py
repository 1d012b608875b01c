# SPDX-License-Identifier: GPL-2.0-only
"""chromium --headless with its sandbox loads a page with 50 resources.

A user without root starts it, as with root there is no sandbox. Its helpers are forks in user, PID
and network namespaces of their own, in an empty root, with a filter of system calls.

It gives up what it is loading when an address of its machine changes (ERR_NETWORK_CHANGED), as the
link-local one does in the first two seconds of a link: so it starts when that has settled."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import Finished, Process, eventually
from topology.side import PYTHON, GuiseSide, HostSide, Side, program, proof, wait_until_says
from topology.user import User

COUNT = 50
CHROMIUM = ["chromium", "--headless", "--disable-gpu", "--no-first-run", "--disable-crash-reporter"]
CHROMIUM += ["--virtual-time-budget=20000", "--dump-dom"]
SETTLED = """
until [ "$(ip -o link | grep -c link/ether)" = \
    "$(ip -6 -o address show scope link -tentative | grep -c fe80)" ]
do sleep 0.1; done
exec "$@"
"""
SERVER = [PYTHON, program("page.py"), "8080", str(COUNT)]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed")
    user = User(tmp_path / "home")
    with user.shares(tmp_path):
        yield user


def browse(user: User, address: str) -> list[Word]:
    return user.command("sh", "-c", SETTLED, "sh", *CHROMIUM, f"http://{address}:8080/")


def found(page: Finished) -> str:
    """What the page found, as it stands in its dumped DOM."""
    text = re.search(r'<pre id="found">(.+)</pre>', page.expect().text)
    assert text, page
    return text[1]


def in_the_sandbox(uid: int) -> set[str]:
    """The kinds of this user's chromium that run with a filter in a PID namespace of their own."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            kind = re.search(r"--type=([\w-]+)", (process / "cmdline").read_text())
            status = (process / "status").read_text()
        except OSError:
            continue
        wanted = (rf"^Uid:\t{uid}\b", r"^NSpid:\t\d+\t\d+", r"^Seccomp:\t2$")
        if kind and all(re.search(line, status, re.MULTILINE) for line in wanted):
            found.add(kind[1])
    return found


def finish(chromium: Process, user: User) -> tuple[Finished, set[str]]:
    """How it ended, and what was in its sandbox meanwhile."""
    filtered: set[str] = set()

    def ended() -> bool:
        filtered.update(in_the_sandbox(user.id))
        return not chromium.running()

    eventually(ended, "chromium ends", 100)
    return chromium.finish(), filtered


def load(
    side: Side, user: User, start: Callable[..., Process]
) -> tuple[str, set[str], Counter[str]]:
    """From a server of far's: what the page found, the helpers, and who asked for each path."""
    with side.far.start(*SERVER) as server:
        wait_until_says(server, "ready")
        with start(*browse(user, side.peer), cwd=user.home) as chromium:
            done, helpers = finish(chromium, user)
        asked = Counter(server.said().text.replace(side.address, "ADDRESS").splitlines()[1:])
        if side.name == "guise":
            assert proof(done)["escaped"] == "0", done
        return found(done), helpers, asked


@pytest.mark.parametrize("mode", ["preload", "tun"])
def test_it_loads_a_page_as_on_the_host(
    host: HostSide, guise: GuiseSide, user: User, mode: str
) -> None:
    on_host, helpers, asked = load(host, user, host.start)
    assert "renderer" in helpers
    assert len(asked) == COUNT + 1 and set(asked.values()) == {1}
    assert all(line.startswith("ADDRESS /") for line in asked), asked
    start = functools.partial(guise.start, options=["-v", "--mode", mode])
    on_guise, helpers, asked_on_guise = load(guise, user, start)
    assert "renderer" in helpers
    assert (on_guise, asked_on_guise) == (on_host, asked)


def test_server_and_browser_on_one_stack(host: HostSide, guise: GuiseSide, user: User) -> None:
    def together(side: Side) -> str:
        words = shlex.join(map(str, browse(user, "127.0.0.1")))
        script = f"{shlex.join(SERVER)} >{user.home}/{side.name} &\n"
        script += f"until grep -q ready {user.home}/{side.name}; do sleep 0.1; done\n"
        script += f"{words}\nkill $!\n"
        return found(side.run("sh", "-c", script, cwd=user.home, seconds=120))

    assert together(guise) == together(host)
