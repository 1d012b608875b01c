# SPDX-License-Identifier: GPL-2.0-only
"""VPNs between two stacks. Their tun devices are the stacks' own: programs there reach each other
through the tunnel, and the host has no interface more.

        10.9.0.1                                    10.9.0.2
        server ──eth0── tap ── far ── tap ──eth0── client
               10.77.2.2                    10.77.3.2
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from topology.content import blob
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import run
from topology.side import PYTHON, GuiseSide
from topology.unpacked import libraries, server

INSIDE = ("10.9.0.1", "10.9.0.2")
SECONDS = 120
# A VPN whose device is $0: its command is $1, and $3 sets the device up when it is there and $2 is
# true. The rest is what runs beside it.
BESIDE = """
$1 >&2 & vpn=$!
end=$(($(date +%s) + 60))
until ip link show "$0" >/dev/null 2>&1 && sh -c "$2"; do
    kill -0 $vpn && [ $(date +%s) -lt $end ] || exit 9
    sleep 0.1
done
sh -ec "$3" && shift 3 && "$@"
status=$?
# What still goes through the tunnel, be it the end of a connection, is lost with it.
while [ $(date +%s) -lt $end ] && [ "$(ss -Htn state connected exclude time-wait)" ]; do
    sleep 0.1
done
kill $vpn
wait $vpn
exit $status
"""


@dataclass
class End:
    device: str
    command: str
    ready: str = ":"
    setup: str = ":"


def openvpn(folder: Path, outside: str) -> tuple[End, End]:
    """By a key that both have."""
    program, key = server("usr/sbin/openvpn"), folder / "key"
    run([program, "--genkey", "secret", key], env=libraries()).expect()
    words = f"{program} --dev vpn --dev-type tun --proto udp --secret {key} --cipher AES-256-CBC"
    if "allow-deprecated-insecure" in run([program, "--help"], env=libraries()).text:
        words += " --allow-deprecated-insecure-static-crypto"
    first, second = INSIDE
    return (
        End("vpn", f"{words} --ifconfig {first} {second}"),
        End("vpn", f"{words} --ifconfig {second} {first} --remote {outside}"),
    )


def wireguard(folder: Path, outside: str) -> tuple[End, End]:
    """By keys of their own. What sets a device up finds its program by a socket of the host's, that
    has the device's name."""
    program, wg = server("usr/bin/wireguard-go"), server("usr/bin/wg")
    public = []
    for i in range(2):
        private = run([wg, "genkey"]).expect().stdout
        (folder / f"private{i}").write_bytes(private)
        public.append(run([wg, "pubkey"], stdin=private).expect().text.strip())

    def end(i: int, where: str) -> End:
        device = f"wg{os.getpid()}.{i}"
        peer = f"peer {public[1 - i]} allowed-ips 10.9.0.0/24 {where}"
        setup = (
            f"{wg} set {device} private-key {folder}/private{i} listen-port 51820 {peer}",
            f"ip address add {INSIDE[i]}/24 dev {device}",
            f"ip link set {device} up",
        )
        # The program makes its socket after the device.
        ready = f"test -S /var/run/wireguard/{device}.sock"
        return End(device, f"{program} -f {device}", ready, "; ".join(setup))

    return end(0, ""), end(1, f"endpoint {outside}:51820")


@pytest.mark.parametrize("vpn", [openvpn, wireguard])
def test_vpn_between_two_stacks(
    guise: GuiseSide,
    far: Namespace,
    run_dir: Path,
    tmp_path: Path,
    leftovers: Leftovers,
    vpn: Callable[[Path, str], tuple[End, End]],
) -> None:
    content = blob(2 << 20)
    (tmp_path / "blob").write_bytes(content)
    first, second = vpn(tmp_path, guise.address)
    far.run("sysctl", "-w", "net.ipv4.ip_forward=1").expect()
    leftovers.look()
    other = GuiseSide(far, run_dir, number=3)
    env = libraries()

    def beside(end: End, *words: str) -> list[str]:
        return ["sh", "-c", BESIDE, end.device, end.command, end.ready, end.setup, *words]

    serve = [PYTHON, "-u", "-m", "http.server", "8000", "-d", str(tmp_path)]
    fetch = ["curl", "-sS", "--retry", "20", "--retry-all-errors", "-m", "60"]
    with guise.serve(*beside(first, *serve), says="Serving HTTP", env=env) as side:
        done = other.run(
            *beside(second, *fetch, f"http://{INSIDE[0]}:8000/blob"), seconds=SECONDS, env=env
        )
        assert not far.interfaces() & {first.device, second.device}
        said = side.said()
    assert hashlib.sha256(done.expect().stdout).hexdigest() == hashlib.sha256(content).hexdigest()
    assert f"{INSIDE[1]} - -" in said.errors, "it came through the tunnel"
