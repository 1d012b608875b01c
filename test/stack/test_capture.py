# SPDX-License-Identifier: GPL-2.0-only
"""guise capture: a stack's packets as pcapng, which tcpdump reads."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.named import Named
from topology.namespace import Word
from topology.process import DEADLINE, Process, eventually, run
from topology.side import GUISE


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Named]:
    named = Named(tmp_path)
    named.up()
    yield named
    for stack in named.ls():
        named.call("down", stack).expect()
    assert not named.run_dir.exists()


def begun(named: Named, *words: str) -> tuple[Process, Path]:
    """A capture that listens: it has written what a file begins with."""
    file = named.folder / "packets.pcapng"
    capture = Process(
        ["env", "--default-signal", GUISE, "capture", "web", "-w", str(file), *words], env=named.env
    )
    try:
        eventually(lambda: file.exists() and file.stat().st_size > 0, "the capture has begun")
    except BaseException:
        capture.stop()
        raise
    return capture, file


def read(file: Path, *words: str) -> list[str]:
    """What tcpdump makes of it."""
    command: list[Word] = ["tcpdump", "-n", "-r", file, *words]
    return run(command, env={"TZ": "UTC"}).expect().text.splitlines()


def ping(named: Named, count: int) -> None:
    words = ["ping", "-c", str(count), "-i", "0.01", "-s", "1000", "127.0.0.1"]
    named.on("web", *words).expect()


def test_tcpdump_reads_what_passed(named: Named) -> None:
    capture, file = begun(named)
    with capture:
        ping(named, 3)
        capture.signal(signal.SIGINT)
        done = capture.finish().expect()
    assert "guise: 6 packets captured, 0 lost" in done.errors
    lines = read(file, "icmp")
    assert len(lines) == 6 and sum("echo request" in line for line in lines) == 3
    assert all("127.0.0.1 > 127.0.0.1" in line and "length 1008" in line for line in lines)


def test_times_are_those_of_the_host(named: Named) -> None:
    capture, file = begun(named, "-c", "1")
    with capture:
        start = time.time()
        ping(named, 1)
        capture.finish().expect()
    [line] = read(file, "-tt")
    assert start - 1e-5 <= float(line.split()[0]) <= time.time()


def test_tcp_is_whole_and_each_packet_is_there_once(named: Named) -> None:
    capture, file = begun(named, "-i", "lo")
    with capture, named.serve():
        script = "import socket; socket.create_connection(('127.0.0.1', 4000)).recv(1)"
        named.python("web", script)
        eventually(lambda: "[S.]" in "".join(live(file)), "the hand-shake is in the file")
        capture.signal(signal.SIGTERM)
        capture.finish().expect()
    flags = [line.split("Flags ")[1].split(",")[0] for line in read(file, "tcp")]
    assert flags[:3] == ["[S]", "[S.]", "[.]"]
    assert flags.count("[S]") == 1


def live(file: Path) -> list[str]:
    """Of a file that is still written the last block may not be whole."""
    return run(["tcpdump", "-n", "-r", file]).text.splitlines()


def test_a_pipe_has_packets_as_they_pass(named: Named) -> None:
    words = [str(GUISE), "capture", "web"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, env={**os.environ, **named.env}
    ) as capture:
        assert capture.stdout
        try:
            header = capture.stdout.read(4)
            assert header == b"\x0a\x0d\x0d\x0a"
            ping(named, 1)
            assert capture.stdout.read(500)
            capture.stdout.close()  # the reader has gone
            assert capture.wait(DEADLINE) == 0
        finally:
            capture.kill()


def test_it_ends_with_the_stack_and_its_file_is_whole(named: Named) -> None:
    capture, file = begun(named)
    with capture:
        ping(named, 1)
        eventually(lambda: len(live(file)) == 2, "the packets are in the file")
        named.call("down", "web").expect()
        capture.finish().expect()
    assert len(read(file)) == 2


def test_a_tap_is_captured_as_ethernet_in_both_directions(named: Named) -> None:
    if os.geteuid():
        pytest.skip("needs root, to make a tap")
    tap = f"c{os.getpid()}"
    link = f'[[link]]\nkind = "tap"\ndevice = "{tap}"\naddresses = ["198.51.100.2/24"]\n'
    named.up(link, "tapped")
    file = named.folder / "tap.pcapng"
    words: list[Word] = [GUISE, "capture", "tapped", "-i", "eth0", "-w", str(file)]
    with Process(words, env=named.env) as capture:
        eventually(lambda: file.exists() and file.stat().st_size > 0, "the capture has begun")
        named.on("tapped", "ping", "-c1", "-W1", "198.51.100.9")
        eventually(lambda: "who-has 198.51.100.9" in "".join(live(file)), "the question is there")
        capture.signal(signal.SIGTERM)
        capture.finish().expect()
    assert "Request who-has 198.51.100.9 tell 198.51.100.2" in "".join(read(file, "arp"))


@pytest.mark.parametrize(
    ("words", "named_words"),
    [
        ([], ["guise capture STACK"]),
        (["nosuch"], ["nosuch", "web"]),
        (["web", "-i", "eth7"], ["eth7", "there are lo"]),
        (["web", "-i", "a/b"], ["a/b", "15 characters"]),
        (["web", "-c", "0"], ["-c", "at least 1"]),
        (["web", "-w", "/nosuch/file"], ["/nosuch/file", "no such file"]),
    ],
    ids=lambda words: " ".join(words),
)
def test_mistakes_are_named(named: Named, words: list[str], named_words: list[str]) -> None:
    done = named.call("capture", *words).expect(2)
    assert done.stdout == b""
    for word in named_words:
        assert word in done.errors, done


def test_full_disk_is_said(named: Named) -> None:
    done = named.call("capture", "web", "-w", "/dev/full").expect(125)
    assert "cannot write" in done.errors and "No space left" in done.errors


def test_a_disk_that_fills_up_ends_it_and_what_is_there_is_read(named: Named) -> None:
    """A file system in memory with room for a few packets."""
    if os.geteuid():
        pytest.skip("needs root, to mount a file system")
    folder = named.folder / "small"
    folder.mkdir()
    words = ["mount -t tmpfs -o size=16k guise-test", str(folder), '&& "$@"; s=$?;']
    words += ["cp", str(folder / "packets"), str(named.folder), "; exit $s"]
    capture: list[Word] = [GUISE, "capture", "web", "-w", folder / "packets"]
    command: list[Word] = ["unshare", "-m", "sh", "-c", " ".join(words), "-", *capture]
    with Process(command, env=named.env) as one:

        def full() -> bool:
            ping(named, 5)
            return one.said().status != -1

        eventually(full, "the disk is full")
        done = one.finish().expect(125)
    assert f"cannot write to {folder}/packets: No space left" in done.errors
    assert len(live(named.folder / "packets")) > 5


def test_two_captures_see_the_same_and_the_stack_goes_on_without_them(named: Named) -> None:
    first, file = begun(named)
    with first:
        with subprocess.Popen(
            ["env", "--default-signal", str(GUISE), "capture", "web"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **named.env},
        ) as second:
            assert second.stdout and second.stdout.read(4) == b"\x0a\x0d\x0d\x0a"
            ping(named, 3)
            second.send_signal(signal.SIGINT)  # Ctrl-C of the one that writes into a pipe
            _, errors = second.communicate(timeout=DEADLINE)
            assert second.returncode == 0 and b"6 packets captured, 0 lost" in errors
        ping(named, 2)
        first.signal(signal.SIGINT)
        assert "10 packets captured, 0 lost" in first.finish().expect().errors
    assert len(read(file, "icmp")) == 10
    ping(named, 1)


def test_a_terminal_is_refused(named: Named) -> None:
    master, slave = os.openpty()
    try:
        words = [str(GUISE), "capture", "web"]
        done = subprocess.run(
            words, stdout=slave, stderr=subprocess.PIPE, env={**os.environ, **named.env}
        )
        assert done.returncode == 2 and b"-w FILE" in done.stderr
    finally:
        os.close(master)
        os.close(slave)
