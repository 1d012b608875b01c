# SPDX-License-Identifier: GPL-2.0-only
"""node as client (http, https, fetch), as server of both, and as a cluster of processes."""

import contextlib
import http.client
import json
import re
import signal
from pathlib import Path

import pytest
from topology.content import NAME, Authority, Content, digest
from topology.namespace import Namespace
from topology.process import DEADLINE, eventually
from topology.side import GuiseSide, HostSide, Side, program, wait_until_says


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path)


def test_client(host: HostSide, guise: GuiseSide, content: Content, authority: Authority) -> None:
    tls = content.serve_tls(authority)

    def talk(side: Side) -> dict[str, str]:
        plain, secure = f"http://{side.peer}:{content.port}", f"https://{side.peer}:{tls}"
        words = ["node", program("node_client.mjs"), plain, secure]
        done = side.run(*words, env={"NODE_EXTRA_CA_CERTS": str(authority.root)}).expect()
        answer: dict[str, str] = json.loads(done.text)
        return answer

    on_host = talk(host)
    ways = ("http", "https", "fetch http", "fetch https", "http upload", "fetch upload")
    assert on_host == dict.fromkeys(ways, content.sha256) | {"refused": "ECONNREFUSED"}
    assert talk(guise) == on_host


def test_server(
    host: HostSide,
    guise: GuiseSide,
    far: Namespace,
    content: Content,
    authority: Authority,
    tmp_path: Path,
) -> None:
    file = tmp_path / "blob"
    file.write_bytes(content.blob)
    words = ["node", program("node_server.mjs"), str(authority.certificate), str(authority.key)]

    def serve(side: Side) -> list[str]:
        curl = ["curl", "-sS", "--cacert", str(authority.root)]
        curl += ["--resolve", f"{NAME}:8443:{side.address}"]
        found = []
        with side.serve(*words, str(file), says="ready"):
            for url in (f"http://{side.address}:8080", f"https://{NAME}:8443"):
                found.append(digest(far.run(*curl, f"{url}/").expect().stdout))
                found.append(far.run(*curl, "-T", str(file), f"{url}/").expect().text)
        return found

    on_host = serve(host)
    assert on_host == [content.sha256] * 4
    assert serve(guise) == on_host


class Workers:
    """Far's requests to a cluster."""

    def __init__(self, side: Side, body: bytes) -> None:
        self.side = side
        self.body = body

    def ask(self, path: str = "/") -> int:
        """The number of the worker that answers; 0 when none does."""
        with self.side.far.entered():
            asked = http.client.HTTPConnection(self.side.address, 8080, timeout=DEADLINE)
            with contextlib.closing(asked):
                try:
                    asked.request("POST", path, self.body, {"Connection": "close"})
                    answer = asked.getresponse()
                except (http.client.HTTPException, ConnectionError):
                    return 0
                assert answer.read() == self.body
                return int(answer.headers["X-Worker"])

    def are(self, *numbers: int) -> None:
        """Asks until all of these have answered, and no other does."""
        missing = set(numbers)

        def all_answered() -> bool:
            who = self.ask()
            assert who in numbers
            missing.discard(who)
            return not missing

        eventually(all_answered, f"workers {numbers} answer")


@pytest.mark.parametrize("policy", ["rr", "none"])
def test_cluster(host: HostSide, guise: GuiseSide, content: Content, policy: str) -> None:
    """Connections or the listener itself are passed to the workers; one that ends is replaced."""

    def serve(side: Side) -> list[str]:
        words = ["node", program("node_cluster.mjs")]
        env = {"NODE_CLUSTER_SCHED_POLICY": policy}
        with side.serve(*words, says="2 listening", env=env) as primary:
            workers = Workers(side, content.blob[:200_000])
            workers.are(1, 2)
            for there, end in ((3, "/exit"), (4, "/kill")):
                assert workers.ask(end) == 0
                wait_until_says(primary, f"{there} listening")
                gone = [int(n) for n in re.findall(r"worker (\d) ended", primary.said().text)]
                workers.are(*{1, 2, 3, there} - set(gone))
            primary.signal(signal.SIGTERM)
            done = primary.finish().expect()
            said = [re.sub("worker .", "a worker", line) for line in done.text.splitlines()]
            return said[:5] + sorted(said[5:])

    on_host = serve(host)
    ends = ["a worker ended by 3", "3 listening", "a worker ended by SIGKILL", "4 listening"]
    last = ["a worker ended by 0", "a worker ended by 0", "all disconnected"]
    assert on_host == ["2 listening", *ends, *last]
    assert serve(guise) == on_host
