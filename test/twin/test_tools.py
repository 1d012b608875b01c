# SPDX-License-Identifier: GPL-2.0-only
"""The tools of an engineer look into the stack that they run on: ss names the programs of its
sockets, nstat counts, sysctl reads and sets, tcpdump reads its ring, ls lists interfaces."""

import re
import subprocess

import pytest
from topology.side import PYTHON, GuiseSide, HostSide, Side, program

CAPTURE = """
timeout 60 tcpdump -n -t -c 4 -i lo icmp 2>"$0" & tcpdump=$!
until grep -q listening "$0"; do kill -0 $tcpdump || exit 1; done
ping -q -c 2 -i 0.1 127.0.0.1 >/dev/null
wait $tcpdump
"""


def test_ss_names_the_program_of_a_socket(host: HostSide, guise: GuiseSide) -> None:
    def look(side: Side) -> list[str]:
        text = side.run(PYTHON, program("connected.py"), "ss", "-tanpH").expect().text
        pid = re.search(r"^pid (\d+)$", text, re.M)
        assert pid, text
        text = re.sub(r"127\.0\.0\.1:\d\d\d\d+", "PORT", text.replace(pid[1], "PID"))
        # (The holder listens, too.)
        return sorted(" ".join(line.split()) for line in text.splitlines() if "PID" in line)

    on_host = look(host)
    assert len(on_host) == 4 and 'users:(("python3",pid=PID,fd=' in on_host[0], on_host
    assert look(guise) == on_host


def test_nstat_counts_what_the_stack_did(host: HostSide, guise: GuiseSide) -> None:
    def count(side: Side) -> list[str]:
        words = "ping -q -c 3 -i 0.1 127.0.0.1 >&2; nstat -a -z -s IcmpInEchos IcmpOutEchoReps"
        before = side.run("sh", "-c", words.split(";")[1]).expect().text
        text = side.run("sh", "-c", words).expect().text
        assert before != text
        return re.findall(r"^(Icmp\w+) ", text, re.M)

    on_host = count(host)
    assert on_host == ["IcmpInEchos", "IcmpOutEchoReps"]
    assert count(guise) == on_host


def test_sysctl_reads_sets_and_lists(host: HostSide, guise: GuiseSide) -> None:
    def use(side: Side) -> tuple[int, str, bool]:
        key = "net.ipv4.ip_default_ttl"
        words = f"sysctl {key}; sysctl -w {key}=61; sysctl -n {key}; sysctl {key}=nonsense; echo $?"
        done = side.run("sh", "-c", words).expect()
        listed = side.run("sysctl", "-a").expect().text
        return done.status, done.text, len(re.findall(r"^net\.ipv4\.tcp_", listed, re.M)) > 50

    on_host = use(host)
    assert on_host[1].splitlines()[1:3] == ["net.ipv4.ip_default_ttl = 61", "61"] and on_host[2]
    assert use(guise) == on_host


@pytest.mark.also_served
def test_tcpdump_reads_through_its_ring(host: HostSide, guise: GuiseSide) -> None:
    def capture(side: Side) -> list[str]:
        says = side.run("mktemp").expect().text.strip()
        try:
            text = side.run("sh", "-c", CAPTURE, says).expect().text
        finally:
            side.run("rm", says)
        return re.sub(r"id \d+", "id", text).splitlines()

    on_host = capture(host)
    assert len(on_host) == 4 and "ICMP echo reply, id, seq 2, length 64" in on_host[3], on_host
    assert capture(guise) == on_host


def test_interfaces_are_listed(guise: GuiseSide) -> None:
    text = guise.run("sh", "-c", "ls /sys/class/net; echo; ip -br link").expect().text
    files, links = text.split("\n\n")
    assert sorted(files.split()) == sorted(line.split()[0] for line in links.splitlines())
    assert "lo" in files.split() and len(files.split()) == 2


def test_a_foreign_file_stays_the_hosts(guise: GuiseSide) -> None:
    """The stack's own /proc has other programs, another host name and another kernel."""
    words = "cat /proc/sys/kernel/osrelease /proc/self/comm; ls /proc/sys/kernel/pid_max"
    assert (
        guise.run("sh", "-c", words).expect().text
        == subprocess.run(["sh", "-c", words], check=True, capture_output=True, text=True).stdout
    )
