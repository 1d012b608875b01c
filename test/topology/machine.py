# SPDX-License-Identifier: GPL-2.0-only
"""A virtual machine with arm64: Debian's kernel for it, and a file system in memory made of
Debian's packages, this project's build, and what a test adds.

There is no disk and no network: what the machine is to do stands in one shell script, what came of
it is read from the console. Its init ends with the machine, whatever happens; where the script is
not done in time, after the machine has said what each of its threads is doing."""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from topology.emulated import ARM64
from topology.process import Finished, run
from topology.side import program

# Of the kernel's modules: devices of the tests, what nftables needs, and what those need.
MODULES = ["net/netfilter", "net/ipv4", "net/ipv6", "net/sched", "crypto", "lib"]
MODULES += ["arch/arm64/crypto"]

PARTS = ["guise", "guise-holder", "guise-kernel", "libguise.so", "libguise-preload.so"]
PARTS += ["test/region/stacks", "test/fault/killed"]
FOLDERS = ["test/preload"]
PROGRAMS = ["checksums.py", "freezer.py", "lineage.py", "strangers.py"]

INIT = """#!/usr/bin/busybox sh
export PATH=/usr/sbin:/usr/bin HOME=/tmp
# The rest. No shell looks there by itself: busybox is static, and so not on a stack.
/usr/bin/busybox --install -s /usr/busybox
export PATH=$PATH:/usr/busybox
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
ip link set lo up
ln -s ../bin/busybox /usr/sbin/modprobe # which the kernel itself calls
modprobe tun
( # Where each thread is: the call, its arguments, and the machine's kernel's stack trace.
    sleep {patience}
    echo "=== not done in {patience} seconds"
    for process in /proc/[1-9]*; do
        program=$(readlink "$process/exe") || continue
        for thread in "$process"/task/*; do
            echo "$thread $program $(cat "$thread/syscall")"
            sed '/invoke_syscall/,$d' "$thread/stack"
        done
    done
    cat /tmp/stdout /tmp/stderr
    poweroff -f
) &
sh /guest/script >/tmp/stdout 2>/tmp/stderr
status=$?
echo "=== stdout"
cat /tmp/stdout
echo "=== stderr"
cat /tmp/stderr
echo "=== status $status ==="
poweroff -f
"""

TO_TELL = 120  # seconds that a machine has for that


@dataclass
class Machine:
    """kernel and system are folders of make/arm64-root."""

    kernel: Path
    system: Path

    def run(self, script: str, work: Path, seconds: float) -> Finished:
        """The script's outcome. What lies in work is the machine's /guest."""
        (work / "script").write_text(script)
        (work / "init").write_text(INIT.format(patience=int(seconds - TO_TELL)))
        (work / "init").chmod(0o755)
        image, memory = next((self.kernel / "boot").glob("vmlinuz-*")), work / "initramfs"
        self._pack(work, memory, image.name.removeprefix("vmlinuz-"))
        console = run(
            [
                *("qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a76", "-smp", "2"),
                *("-m", "1024", "-display", "none", "-serial", "stdio", "-monitor", "none"),
                *("-nic", "none", "-no-reboot", "-kernel", image, "-initrd", memory),
                *("-append", "console=ttyAMA0 panic=-1 quiet"),
            ],
            seconds=seconds,
        )
        text = console.text.replace("\r\n", "\n")
        found = re.search(
            r"^=== stdout\n(.*)^=== stderr\n(.*)^=== status (\d+) ===$", text, re.DOTALL | re.M
        )
        assert found, f"the machine did not come to the end of its script: {text}{console.errors}"
        return Finished(script, int(found[3]), found[1].encode(), found[2].encode())

    def _pack(self, work: Path, target: Path, release: str) -> None:
        """The initramfs: archives one behind the other."""
        top = work / "top"
        for folder in ("proc", "sys", "dev", "tmp", "run", "guest", "usr/busybox"):
            (top / folder).mkdir(parents=True)
        shutil.copy(work / "init", top / "init")
        for file in work.iterdir():
            if file.is_file():
                shutil.copy(file, top / "guest" / file.name)
        for name in PROGRAMS:
            shutil.copy(program(name), top / "guest" / name)
        for part in PARTS:
            (top / "guise" / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ARM64 / part, top / "guise" / part)
        for folder in FOLDERS:
            shutil.copytree(ARM64 / folder, top / "guise" / folder)
        self._modules(top / "usr/lib/modules" / release, release)
        (top / "lib").symlink_to("usr/lib")
        subprocess.run(["depmod", "-b", top, release], check=True)
        unwanted = r"^\./(usr/share/(doc|man|locale|info|bash-completion)|var)/"
        script = f"""
            cd "$1" && find . | grep -v -E '{unwanted}' | cpio -o -H newc --quiet -R 0:0 &&
            cd "$2" && find . -mindepth 1 | cpio -o -H newc --quiet -R 0:0
        """
        with target.open("wb") as archive:
            subprocess.run(
                ["sh", "-e", "-c", script, "sh", self.system, top], stdout=archive, check=True
            )

    def _modules(self, target: Path, release: str) -> None:
        source = self.kernel / "usr/lib/modules" / release
        for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)
        drivers = (source / "kernel/drivers/net").glob("*.ko*")
        found = [file for folder in MODULES for file in (source / "kernel" / folder).rglob("*.ko*")]
        for file in [*drivers, *found]:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes()
            if copy.suffix == ".xz":
                copy, content = copy.with_suffix(""), lzma.decompress(content)
            copy.write_bytes(content)
