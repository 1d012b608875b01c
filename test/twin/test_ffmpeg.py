# SPDX-License-Identifier: GPL-2.0-only
"""ffmpeg reads a film over HTTP and decodes it: each stream's checksum is the file's own."""

from pathlib import Path

import pytest
from topology.content import Content
from topology.process import run
from topology.side import GuiseSide, HostSide, Side


@pytest.mark.parametrize("container", ["matroska", "mp4"])
def test_reads_over_http(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path, container: str
) -> None:
    film = tmp_path / "film"
    ffmpeg = ["ffmpeg", "-nostdin", "-v", "error"]
    make = [*ffmpeg, "-f", "lavfi", "-i", "testsrc=duration=3:size=320x240:rate=25"]
    make += ["-f", "lavfi", "-i", "sine=duration=3", "-c:v", "mpeg4", "-b:v", "2M", "-c:a", "aac"]
    # The index of an mp4 comes first: the server hands out whole files only.
    run([*make, "-movflags", "+faststart", "-f", container, film]).expect()
    content.blob = film.read_bytes()
    hashes = ["-map", "0", "-f", "streamhash", "-hash", "sha256", "-"]

    def read(side: Side) -> str:
        url = f"http://{side.peer}:{content.port}/blob"
        return side.run(*ffmpeg, "-i", url, *hashes).expect().text

    on_file = run([*ffmpeg, "-i", str(film), *hashes]).expect().text
    assert on_file.count("SHA256=") == 2, on_file
    on_host = read(host)
    assert on_host == on_file
    assert read(guise) == on_host
