# SPDX-License-Identifier: GPL-2.0-only
"""openssl s_client and s_server, with a local authority."""

from pathlib import Path

import pytest
from topology.content import NAME, Authority, blob, digest
from topology.namespace import Namespace
from topology.side import GuiseSide, HostSide, Side, wait_until_says

VERSIONS = pytest.mark.parametrize("version", ["tls1_2", "tls1_3"])


BLOB = blob(4 << 20)


def serving(authority: Authority, folder: Path, version: str) -> list[str]:
    """What serves the blob over HTTP/1.0 and TLS, in the folder."""
    (folder / "blob").write_bytes(BLOB)
    words = ["openssl", "s_server", "-WWW", f"-{version}", "-accept", "4433"]
    return [*words, "-cert", str(authority.certificate), "-key", str(authority.key)]


@VERSIONS
def test_client(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path, version: str
) -> None:
    authority = Authority.make(tmp_path)

    def fetch(side: Side) -> tuple[bytes, str]:
        words = ["openssl", "s_client", "-quiet", f"-{version}", "-verify_return_error"]
        words += ["-CAfile", str(authority.root), "-verify_hostname", NAME, "-servername", NAME]
        words += ["-connect", f"{side.peer}:4433"]
        done = side.run(*words, stdin=b"GET /blob HTTP/1.0\r\n\r\n").expect()
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        return head, digest(body)

    with far.start(*serving(authority, tmp_path, version), cwd=tmp_path) as server:
        wait_until_says(server, "ACCEPT")
        on_host = fetch(host)
        assert on_host[0].startswith(b"HTTP/1.0 200") and on_host[1] == digest(BLOB)
        assert fetch(guise) == on_host


@VERSIONS
def test_server(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path, version: str
) -> None:
    authority = Authority.make(tmp_path)

    def serve(side: Side) -> list[str]:
        with side.serve(*serving(authority, tmp_path, version), says="ACCEPT", cwd=tmp_path):
            curl = ["curl", "-sS", "--cacert", str(authority.root)]
            curl += ["--resolve", f"{NAME}:4433:{side.address}", f"https://{NAME}:4433/blob"]
            return [digest(far.run(*curl).expect().stdout) for _ in range(3)]

    on_host = serve(host)
    assert on_host == [digest(BLOB)] * 3
    assert serve(guise) == on_host
