# SPDX-License-Identifier: GPL-2.0-only
"""su and sudo in a script: what root starts by them is on the stack, with all that this starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from topology.content import Content
from topology.namespace import Word
from topology.process import DEADLINE
from topology.side import GuiseSide, HostSide, Side
from topology.user import skip_unless_readable

# Both ask the machine, which in a mount namespace is the test's own. (ip netns exec made one:
# nothing of this is seen outside.)
MACHINE = """
folder=$1
shift
for file in passwd shadow sudoers; do
	mount --bind "$folder/$file" /etc/$file
done
mount -t tmpfs tmpfs /run
"""
PASSWD = "root:x:0:0::{0}:/bin/sh\ntester:x:65534:65534::{0}:/bin/sh\n"
SHADOW = "root:*:19000::::::\ntester:*:19000::::::\n"
SUDOERS = """
Defaults env_reset, env_keep += "KEPT", !fqdn, {}
root ALL = (ALL:ALL) NOPASSWD: ALL
tester ALL = (ALL:ALL) NOPASSWD: ALL
"""
# Each says which user it is, what it fetched, and what is left of its environment.
SCRIPT = """
export KEPT=kept LOST=lost
fetch="$folder/fetch"
echo "id -un; curl -sS $1 | sha256sum" >"$fetch"
echo 'echo "$KEPT, $LOST"' >>"$fetch"
sh "$fetch"
su tester -c "sh $fetch"
su - tester -c "sh $fetch"
runuser -u tester -- sh "$fetch"
sudo -u tester sh "$fetch"
sudo -u tester -i sh "$fetch"
sudo -E -u tester sh "$fetch"
sudo sh "$fetch"
su tester -c "exec env -i sh $fetch"
sh "$fetch"
"""
# A program that the one starts is the server of a program that the other starts.
TOGETHER = """
sudo -u tester sh -c 'curl -sS "$0" | nc -N -l 127.0.0.1 7000' "$1" &
su tester -c 'until nc -d 127.0.0.1 7000 2>/dev/null; do sleep 0.1; done' | sha256sum
wait
"""


@pytest.fixture
def machine(tmp_path: Path) -> list[Word]:
    """The words that begin a script in it, whose arguments follow."""
    if not shutil.which("sudo"):
        pytest.skip("sudo is not installed")
    skip_unless_readable(65534)
    (tmp_path / "passwd").write_text(PASSWD.format(tmp_path), encoding="ascii")
    (tmp_path / "shadow").write_text(SHADOW, encoding="ascii")
    return ["sh", "-ec"]


def allows(folder: Path, setting: str) -> None:
    sudoers = folder / "sudoers"
    sudoers.write_text(SUDOERS.format(setting), encoding="ascii")
    sudoers.chmod(0o440)


@pytest.mark.parametrize("terminal", ["use_pty", "!use_pty"])
def test_whom_root_makes_is_on_the_stack(
    host: HostSide,
    guise: GuiseSide,
    content: Content,
    machine: list[Word],
    tmp_path: Path,
    terminal: str,
) -> None:
    def fetch(side: Side, script: str) -> str:
        url = f"http://{side.peer}:{content.port}/blob"
        return side.run(*machine, MACHINE + script, "sh", tmp_path, url).expect().text

    allows(tmp_path, terminal)
    host.near.ip("link", "set", "lo", "up")
    on_host = fetch(host, SCRIPT)
    lines = on_host.splitlines()
    root, kept, lost = "root", "kept, lost", "kept, "
    assert lines[0::3] == [root, *["tester"] * 6, root, "tester", root]
    assert lines[1::3] == [f"{content.sha256}  -"] * 10
    assert lines[2::3] == [kept, kept, ", ", kept, lost, lost, kept, lost, ", ", kept]
    assert fetch(guise, SCRIPT) == on_host
    on_host = fetch(host, TOGETHER)
    assert on_host == f"{content.sha256}  -\n"
    assert fetch(guise, TOGETHER) == on_host


@pytest.mark.also_served
def test_whom_a_user_makes_is_not_and_that_is_said(
    guise: GuiseSide, machine: list[Word], tmp_path: Path
) -> None:
    """No memory of a user's may be in a program with more rights than that user has."""
    allows(tmp_path, "!use_pty")
    script = "su tester -c 'echo $(sudo -n id -u; sudo -n grep -c memfd:guise /proc/self/maps)'"
    with guise.start(*machine, f"{MACHINE}{script}", "sh", tmp_path, options=["-v"]) as process:
        done = process.finish(DEADLINE).expect()
    assert done.text == "0 0\n"
    said, proof = done.errors.splitlines()
    reason = "/usr/bin/sudo gains privileges when it starts, so guise is not loaded into it"
    assert said.startswith(f"guise: {reason}"), done
    outside = "2 programs on the host's stack: /usr/bin/sudo (gains privileges, 2 times)"
    assert proof.endswith(outside) and "escaped" not in proof, done
