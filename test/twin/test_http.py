# SPDX-License-Identifier: GPL-2.0-only
"""curl and wget move a blob over HTTP and HTTPS, in both directions, as they do on the host."""

import hashlib
from pathlib import Path

import pytest
from topology.content import NAME, Authority, Content
from topology.side import GuiseSide, HostSide, Side

FAMILIES = pytest.mark.parametrize("family", ["IPv4", "IPv6"])


def location(side: Side, content: Content, family: str) -> str:
    peer = side.peer if family == "IPv4" else f"[{side.peer6}]"
    return f"http://{peer}:{content.port}"


@pytest.mark.also_served
@pytest.mark.also_without_root
@FAMILIES
def test_curl_downloads(host: HostSide, guise: GuiseSide, content: Content, family: str) -> None:
    def fetch(side: Side) -> tuple[str, bytes]:
        done = side.run("curl", "-sS", f"{location(side, content, family)}/blob").expect()
        return hashlib.sha256(done.stdout).hexdigest(), done.stderr

    on_host = fetch(host)
    assert on_host == (content.sha256, b"")
    assert fetch(guise) == on_host


@pytest.mark.also_without_root
@FAMILIES
def test_curl_uploads(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path, family: str
) -> None:
    file = tmp_path / "blob"
    file.write_bytes(content.blob)

    def upload(side: Side) -> tuple[str, str]:
        url = f"{location(side, content, family)}/there"
        done = side.run("curl", "-sS", "-T", file, "-w", "%{http_code} %{size_upload}", url)
        return done.expect().text, content.uploads[-1]

    on_host = upload(host)
    assert on_host == (f"{content.sha256}\n201 {len(content.blob)}", content.sha256)
    assert upload(guise) == on_host


@pytest.mark.also_without_root
def test_curl_downloads_several_files_at_once(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path
) -> None:
    def fetch(side: Side) -> list[str]:
        folder = tmp_path / side.name
        folder.mkdir()
        words: list[str | Path] = ["curl", "-sS", "--parallel"]
        for i in range(6):
            words += ["-o", folder / f"{i}", f"{location(side, content, 'IPv4')}/blob"]
        side.run(*words).expect()
        return [hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.iterdir())]

    on_host = fetch(host)
    assert on_host == [content.sha256] * 6
    assert fetch(guise) == on_host


@pytest.mark.also_without_root
def test_curl_speaks_tls_to_a_server_of_a_local_authority(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path
) -> None:
    authority = Authority.make(tmp_path)
    port = content.serve_tls(authority)
    file = tmp_path / "blob"
    file.write_bytes(content.blob)

    def both_ways(side: Side) -> list[str]:
        words = ["curl", "-sS", "--cacert", str(authority.root)]
        words += ["--resolve", f"{NAME}:{port}:{side.peer}"]
        url = f"https://{NAME}:{port}"
        down = side.run(*words, f"{url}/blob").expect()
        up = side.run(*words, "-T", file, f"{url}/there").expect()
        return [hashlib.sha256(down.stdout).hexdigest(), up.text.strip(), content.uploads[-1]]

    on_host = both_ways(host)
    assert on_host == [content.sha256] * 3
    assert both_ways(guise) == on_host


@pytest.mark.also_without_root
def test_curl_refuses_a_server_of_an_unknown_authority(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path
) -> None:
    port = content.serve_tls(Authority.make(tmp_path))

    def refused(side: Side) -> tuple[int, str]:
        words = ["curl", "-sS", "--resolve", f"{NAME}:{port}:{side.peer}"]
        done = side.run(*words, f"https://{NAME}:{port}/blob")
        return done.status, done.errors.splitlines()[0]

    on_host = refused(host)
    assert on_host[0] == 60, "curl's status for a peer that cannot be authenticated"
    assert refused(guise) == on_host


def test_curl_says_that_a_connection_is_refused(
    host: HostSide, guise: GuiseSide, content: Content
) -> None:
    content.close()

    def refused(side: Side) -> tuple[int, bool]:
        done = side.run("curl", "-sS", f"{location(side, content, 'IPv4')}/blob")
        return done.status, "Failed to connect" in done.errors

    on_host = refused(host)
    assert on_host == (7, True)
    assert refused(guise) == on_host


@pytest.mark.also_without_root
@FAMILIES
def test_wget_downloads(host: HostSide, guise: GuiseSide, content: Content, family: str) -> None:
    def fetch(side: Side) -> tuple[str, bytes]:
        done = side.run("wget", "-q", "-O", "-", f"{location(side, content, family)}/blob")
        done.expect()
        return hashlib.sha256(done.stdout).hexdigest(), done.stderr

    on_host = fetch(host)
    assert on_host == (content.sha256, b"")
    assert fetch(guise) == on_host


@pytest.mark.also_without_root
def test_wget_posts_a_file_and_reports_a_missing_page(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path
) -> None:
    file = tmp_path / "blob"
    file.write_bytes(content.blob)

    def talk(side: Side) -> tuple[str, str, int]:
        there = location(side, content, "IPv4")
        posted = side.run("wget", "-q", "-O", "-", f"--post-file={file}", f"{there}/there").expect()
        missing = side.run("wget", "-q", "-O", "-", f"{there}/missing")
        return posted.text, content.uploads[-1], missing.status

    on_host = talk(host)
    assert on_host == (f"{content.sha256}\n", content.sha256, 8)
    assert talk(guise) == on_host
