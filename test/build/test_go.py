# SPDX-License-Identifier: GPL-2.0-only
"""make/go runs a Go that is new enough: the installed one, or one that it fetches once."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.search(r"^GO_VERSION=(\S+)$", (ROOT / "versions.env").read_text("utf-8"), re.M)

# A go that knows what make/go asks it for. A module's files are not executable.
GO = """\
#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in
version) echo "go version go$HAVE linux/amd64" ;;
'env GOHOSTOS') echo linux ;;
'env GOHOSTARCH') echo amd64 ;;
'mod download '*)
	[ -z "$OFFLINE" ] || exit 1
	mkdir -p "$GOMODCACHE/$3/bin" "$GOMODCACHE/$3/pkg/tool"
	printf '#!/bin/sh\\necho "fetched $*"\\n' >"$GOMODCACHE/$3/bin/go"
	chmod -R a-wx,u+rX "$GOMODCACHE/$3" ;;
*) echo "installed $*" ;;
esac
"""


class Machine:
    """A PATH with that go in front, and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.log, self.cache = folder / "log", folder / "cache"
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "go").write_text(GO)
        (self.bin / "go").chmod(0o755)

    def go(self, have: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "make/go", "build", "./..."],
            env={
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "HOME": "/nonexistent",
                "XDG_CACHE_HOME": str(self.cache),
                "LOG": str(self.log),
                "HAVE": have,
                **env,
            },
            capture_output=True,
            text=True,
        )

    def downloads(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "download" in line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_one_that_is_new_enough_is_used_as_it_is(machine: Machine) -> None:
    assert machine.go("99.0").stdout == "installed build ./...\n"
    assert not machine.downloads()
    assert not machine.cache.exists()


def test_where_it_is_too_old_the_pinned_one_is_fetched_once(machine: Machine) -> None:
    assert PINNED
    first = machine.go("1.19.8")
    assert first.stdout == "fetched build ./...\n"
    assert f"fetching Go {PINNED[1]}: go 1.19.8 is older than" in first.stderr
    module = f"golang.org/toolchain@v0.0.1-go{PINNED[1]}.linux-amd64"
    assert machine.downloads() == [f"mod download {module}"]
    again = machine.go("1.19.8")
    assert (again.stdout, again.stderr) == ("fetched build ./...\n", "")
    assert len(machine.downloads()) == 1
    assert os.listdir(machine.cache / "guise") == [f"go-{PINNED[1]}"]


def test_a_fetch_that_fails_leaves_nothing_and_says_what_to_do(machine: Machine) -> None:
    done = machine.go("1.19.8", OFFLINE="1")
    assert done.returncode == 1 and not done.stdout
    assert "could not fetch Go" in done.stderr and "newer" in done.stderr
    assert not os.listdir(machine.cache / "guise")
