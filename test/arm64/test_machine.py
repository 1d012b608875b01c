# SPDX-License-Identifier: GPL-2.0-only
"""guise on arm64 hosts: virtual machines with Debian's own kernels, of 4 and of 16 KiB pages.

curl, on guise ── tap ── the machine's own stack: an HTTP server on 192.0.2.1
"""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

import pytest
from topology.emulated import PROJECT, debian, packages
from topology.etc import ETC
from topology.machine import Machine

# A kernel and the release of Debian that has it.
KERNELS = {
    "4k": ("linux-image-arm64", None, 4096),
    "16k": ("linux-image-arm64-16k", "trixie", 16384),
}

UPLOAD = """
set -e
ip address add 192.0.2.1/32 dev lo
python3 /guest/checksums.py 192.0.2.1 8080 4000000 >/tmp/server 2>&1 &
until grep -q listening /tmp/server; do sleep 0.2; done
python3 -c 'import resource; print(resource.getpagesize())'
/guise/test/region/stacks pair
/guise/guise run -v --cc westwood -- curl -sS -T /guest/content http://192.0.2.1:8080/
echo
/guise/guise run -v --cc bbr -- curl -sS -o /tmp/got http://192.0.2.1:8080/
sha256sum </tmp/got
ip tuntap show | wc -l
nft list tables | wc -l
"""

# Programs whose cases do not run twice in the machine.
NOT_TWINS = {
    "own": "what is guise's own: the host has nothing like it",
    "raw": "written in the instructions of x86-64",
}

# Cases of the preload library, each on the machine's own stack and on guise. What they start is
# busybox, which is static: guise says so.
TWINS = """
export CASE_SECONDS=600
cp /guest/hosts /guest/resolv.conf /guest/nsswitch.conf /etc/
while read -r program case; do
    set -- "/guise/test/preload/$program" "$case"
    { "$@"; echo "ended with $?"; } >/tmp/host 2>&1 </dev/null
    { /guise/guise run --link none -- "$@"; echo "ended with $?"; } >/tmp/guise 2>&1 </dev/null
    sed -i '\\|^guise: /usr/busybox/|d' /tmp/guise
    if ! grep -q '^ended with 0$' /tmp/host; then
        echo "$program $case fails on the host:"
        cat /tmp/host
    elif ! diff /tmp/host /tmp/guise >/tmp/difference; then
        echo "$program $case differs:"
        cat /tmp/difference
    fi
done </guest/cases
true
"""

# By a user, on a kernel with Yama: which process traces which, and kills that only the tracer can
# mend.
# (Neither this nor the next depends on the size of pages.)
YAMA = """
set -e
chmod 755 /
chmod 1777 /tmp
mkdir /tmp/home
chown 1000:1000 /tmp/home
echo 1 >/proc/sys/kernel/yama/ptrace_scope
as_user() {
    HOME=/tmp/home python3 -c 'import os, sys
os.setgroups([])
os.setgid(1000)
os.setuid(1000)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}
as_user /usr/bin/python3 /guest/strangers.py
as_user /guise/guise run -v --link none -- python3 /guest/lineage.py
as_user /guise/guise run -v --link none --sysctl net.ipv4.tcp_max_tw_buckets=64 -- \
    /guise/test/fault/killed kill bulk 20
"""

FREEZER = """
set -e
ip address add 192.0.2.1/32 dev lo
mount -t cgroup2 none /sys/fs/cgroup
python3 /guest/freezer.py /guise/guise run -v --
"""


def with_pages(pages: str) -> tuple[Machine, int]:
    package, suite, size = KERNELS[pages]
    system = debian(*packages("PACKAGES_ARM64"), *packages("PACKAGES_ARM64_MACHINE"))
    return Machine(debian(package, suite=suite), system), size


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("pages", KERNELS)
def test_curl_uploads_over_a_tap(pages: str, tmp_path: Path) -> None:
    machine, size = with_pages(pages)
    content = random.Random(3).randbytes(4_000_000)
    (tmp_path / "content").write_bytes(content)
    done = machine.run(UPLOAD, tmp_path, seconds=1500).expect()
    sent = hashlib.sha256(content).hexdigest()
    got = hashlib.sha256(random.Random(1).randbytes(4_000_000)).hexdigest()
    assert done.text.splitlines() == [
        str(size),
        *("right 1000000", "back 1000000", "sysctl westwood vegas"),
        sent,
        f"{got}  -",
        *("0", "0"),  # of taps and tables are left
    ], done
    for cc in ("westwood", "bbr"):
        assert f"{cc} on the wire, 1 program, 1 connection; whether sockets" in done.errors, done


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pages", KERNELS)
def test_preloaded_calls_do_what_the_hosts_do(pages: str, tmp_path: Path) -> None:
    machine, _ = with_pages(pages)
    cases = [
        f"{source.stem} {name}"
        for source in sorted((PROJECT / "test/preload").glob("*.c"))
        if source.stem not in NOT_TWINS
        for name in re.findall(r"^CASE\((\w+)\)", source.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(cases) > 40
    for name, text in ETC.items():
        (tmp_path / name).write_text(text, "ascii")
    (tmp_path / "cases").write_text("".join(f"{case}\n" for case in cases))
    done = machine.run(TWINS, tmp_path, seconds=3000).expect()
    assert not done.text, done


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_users_tree_is_traced_where_yama_asks_for_it(tmp_path: Path) -> None:
    machine, _ = with_pages("4k")
    done = machine.run(YAMA, tmp_path, seconds=1500).expect()
    lines = done.text.splitlines()
    assert lines[:2] == ["another child: Operation not permitted", "its parent: may"], done
    assert len(lines) == 15, done
    assert all(line.endswith(": guise-holder") for line in lines[2:13]), done
    killed = re.fullmatch(r"rounds 20 finished (\d+) lost 0", lines[13])
    assert killed and int(killed[1]) > 0, done
    left = [int(n) for n in lines[14].split()[1::2]]  # threads, processes, sockets, KiB
    assert max(left[:3]) <= 0 and left[3] < 1024, done
    assert "could not be traced" not in done.errors, done


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_member_is_frozen_and_the_others_go_on(tmp_path: Path) -> None:
    machine, _ = with_pages("4k")
    done = machine.run(FREEZER, tmp_path, seconds=1500).expect()
    assert done.text.splitlines() == [
        "the others go on without one that waits, and it goes on",
        "bulk: when it goes on the others do, and when it is killed",
        "calls: when it goes on the others do, and when it is killed",
    ], done
    assert "whether sockets escaped" in done.errors and "is lost" not in done.errors, done
