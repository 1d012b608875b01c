# SPDX-License-Identifier: GPL-2.0-only
"""git over http: nginx, fcgiwrap and git's own backend as the server, trees of git as clients."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from topology import nginx
from topology.content import blob
from topology.namespace import Namespace, Word
from topology.process import eventually, run
from topology.side import GuiseSide, HostSide, Side
from topology.unpacked import libraries, server

# The location, as nginx is told.
LOCATION = """~ ^/git(/.*)$ {{
    client_max_body_size 0;
    fastcgi_pass 127.0.0.1:9000;
    fastcgi_param SCRIPT_FILENAME {backend};
    fastcgi_param GIT_PROJECT_ROOT {folder};
    fastcgi_param GIT_HTTP_EXPORT_ALL 1;
    fastcgi_param REMOTE_USER tester;
    fastcgi_param PATH_INFO $1;
    fastcgi_param QUERY_STRING $query_string;
    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param CONTENT_TYPE $content_type;
    fastcgi_param CONTENT_LENGTH $content_length;
}}"""
# $1: a script that runs beside, $2: its folder, $3: fcgiwrap, and then the words of nginx.
SERVE = """
(eval "$1") &
"$3" -c 2 -s tcp:127.0.0.1:9000 &
shift 3
exec "$@"
"""
# Two clones, of which one fetches what the other has pushed.
CLIENTS = """
url=$1
cd "$2"
until git ls-remote "$url" >/dev/null 2>&1; do sleep 0.1; done
git clone -q "$url" one
git clone -q --depth 1 "$url" two
cd one
{ git rev-parse HEAD; cat big; } >more
git add more
git commit -qm more
git push -q origin HEAD:trunk
cd ../two
git fetch -q --unshallow origin
git merge -q --ff-only origin/trunk
git fsck --strict --no-progress
git log --format=%H,%s
sha256sum more
git push -q origin HEAD:another
git ls-remote origin
echo served
"""
PERSON = {"NAME": "tester", "EMAIL": "tester@example", "DATE": "2020-01-01T00:00:00Z"}
ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
ENV |= {f"GIT_{who}_{what}": PERSON[what] for who in ("AUTHOR", "COMMITTER") for what in PERSON}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with something to send, and what the server makes of it lies beside."""
    tree = tmp_path / "tree"
    run(["git", "init", "-q", "-b", "trunk", tree], env=ENV).expect()
    for number in range(3):
        (tree / "big").write_bytes(blob(1_000_000 + number))
        run(["git", "-C", tree, "add", "big"], env=ENV).expect()
        run(["git", "-C", tree, "commit", "-qm", f"commit {number}"], env=ENV).expect()
    return tree


def served(folder: Path, repository: Path, beside: str = ":") -> list[Word]:
    """The words that serve bare copies of the repository, with libraries() around."""
    for copy in ("host", "guise"):
        run(["git", "clone", "-q", "--bare", repository, folder / copy], env=ENV).expect()
    backend = Path(run(["git", "--exec-path"]).expect().text.strip()) / "git-http-backend"
    words = nginx.prepare(folder, LOCATION.format(backend=backend, folder=folder))
    fcgiwrap = server("usr/sbin/fcgiwrap")
    return ["sh", "-ec", SERVE, "sh", beside, folder, fcgiwrap, *words]


def clients(side: Side, address: str, folder: Path) -> list[Word]:
    folder.mkdir()
    return ["sh", "-ec", CLIENTS, "sh", f"http://{address}:8080/git/{side.name}", folder]


def test_server_with_clients_on_its_own_stack_and_elsewhere(
    host: HostSide, guise: GuiseSide, far: Namespace, repository: Path, tmp_path: Path
) -> None:
    def serve(side: Side) -> tuple[str, str]:
        folder = tmp_path / f"served-{side.name}"
        folder.mkdir()
        own = shlex.join(str(word) for word in clients(side, "127.0.0.1", folder / "own"))
        with side.start(*served(folder, repository, own), env=libraries() | ENV) as process:
            eventually(lambda: "served\n" in process.said().text, "its own clients are done")
            words = clients(side, side.address, folder / "far")
            return process.said().text, far.run(*words, env=ENV).expect().text

    on_host = serve(host)
    assert [len(text.splitlines()) for text in on_host] == [9, 10], on_host
    assert serve(guise) == on_host


@pytest.mark.also_served
def test_clients(
    host: HostSide, guise: GuiseSide, far: Namespace, repository: Path, tmp_path: Path
) -> None:
    """The programs that git starts are on the stack."""
    folder = tmp_path / "served"
    folder.mkdir()
    with far.start(*served(folder, repository), env=libraries() | ENV):

        def clone(side: Side) -> str:
            words = clients(side, side.peer, folder / f"of-{side.name}")
            return side.run(*words, env=ENV).expect().text

        on_host = clone(host)
        assert len(on_host.splitlines()) == 9, on_host
        assert clone(guise) == on_host
