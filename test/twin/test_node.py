# SPDX-License-Identifier: GPL-2.0-only
"""node as client (http, https, fetch) and as server of both."""

import json
from pathlib import Path

import pytest
from topology.content import NAME, Authority, Content, digest
from topology.namespace import Namespace
from topology.side import GuiseSide, HostSide, Side, program


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
