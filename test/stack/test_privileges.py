# SPDX-License-Identifier: GPL-2.0-only
"""What programs may do on a stack: everything, or what the host would let them do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from topology.named import ALONE, Named
from topology.process import run
from topology.side import GUISE, PYTHON

pytestmark = pytest.mark.skipif(bool(os.geteuid()), reason="needs root, to be other users")

NOBODY = 65534
TRIALS = """
import errno, os, socket, sys

def tell(what, trial):
    try:
        trial()
        print(what, "ok")
    except OSError as error:
        print(what, errno.errorcode[error.errno])

def port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 80))

def packets():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()

def sysctl():
    with open("/proc/sys/net/ipv4/ip_forward", "w") as file:
        file.write("1")

for trial in (port, packets, sysctl):
    tell(trial.__name__, trial)
"""
USER = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
WITHOUT = [*USER, "--inh-caps=-all", "--bounding-set=-all"]
BIND = [*USER, "--inh-caps=-all,+net_bind_service", "--ambient-caps=-all,+net_bind_service"]
NAMESPACE = ["unshare", "--user", "--map-root-user"]
REFUSED = {"port": "EACCES", "packets": "EPERM", "sysctl": "EACCES"}
ALLOWED = dict.fromkeys(REFUSED, "ok")


def trials(privileges: str | None, who: list[str]) -> dict[str, str]:
    words = ["run", "--link", "none", *(["--privileges", privileges] if privileges else [])]
    done = run([str(GUISE), *words, "--", *who, PYTHON, "-c", TRIALS]).expect()
    return dict(line.split() for line in done.text.splitlines())


@pytest.mark.parametrize(
    ("privileges", "who", "expected"),
    [
        (None, WITHOUT, ALLOWED),
        ("all", WITHOUT, ALLOWED),
        ("host", WITHOUT, REFUSED),
        ("host", BIND, {**REFUSED, "port": "ok"}),
        ("host", [], ALLOWED),
        # Root of a namespace has capabilities there alone. By its number it may write the file.
        ("host", NAMESPACE, {**REFUSED, "sysctl": "EPERM"}),
    ],
    ids=["by default", "all", "host", "host, with a capability", "host, as root", "namespace"],
)
def test_what_a_program_may_do(
    privileges: str | None, who: list[str], expected: dict[str, str]
) -> None:
    assert trials(privileges, who) == expected


def test_rights_that_a_program_gives_up_are_gone_on_the_stack() -> None:
    """A server that binds its port and becomes another user, with a thread from before."""
    script = (
        "import os, socket, threading\n"
        "def bind(port):\n"
        "    try:\n"
        "        with socket.socket() as s: s.bind(('127.0.0.1', port))\n"
        "        return 'ok'\n"
        "    except OSError as error: return os.strerror(error.errno)\n"
        "said, go = [], threading.Event()\n"
        "def thread():\n"
        "    said.append(bind(81)); ready.set(); go.wait(); said.append(bind(81))\n"
        "ready = threading.Event()\n"
        "t = threading.Thread(target=thread); t.start(); ready.wait()\n"
        "print(bind(80))\n"
        f"os.setresuid({NOBODY}, {NOBODY}, {NOBODY})\n"
        "print(bind(80), bind(8080)); go.set(); t.join(); print(*said)\n"
    )
    words = ["run", "--link", "none", "--privileges", "host", "--"]
    done = run([str(GUISE), *words, PYTHON, "-c", script]).expect()
    no = "Permission denied"
    assert done.text.splitlines() == ["ok", f"{no} ok", f"ok {no}"]


TRY = """
import socket, sys
def bind(port):
    try:
        with socket.socket() as s: s.bind(("127.0.0.1", port))
        return "ok"
    except OSError as error: return "no"
"""
EXEC = f"""{TRY}
import ctypes, os
PR_CAP_AMBIENT, CLEAR_ALL = 47, 4
s = socket.socket()
s.bind(("127.0.0.1", 80))
s.set_inheritable(True)
assert not ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)
print(bind(81), flush=True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], str(s.fileno())])
"""
NEXT = f"""{TRY}
port = socket.socket(fileno=int(sys.argv[1])).getsockname()[1]
print(port, bind(81), bind(8080))
"""


def test_rights_that_do_not_pass_exec_are_gone_on_the_stack() -> None:
    """Though the sockets pass, and with them the program's place."""
    words = ["run", "--link", "none", "--privileges", "host", "--"]
    done = run([str(GUISE), *words, *BIND, PYTHON, "-c", EXEC, NEXT]).expect()
    assert done.text.splitlines() == ["ok", "80 no ok"]


FORK = f"""{TRY}
import os, subprocess
s = socket.socket()
print(bind(80), flush=True)
if not os.fork():
    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
    print(bind(80), flush=True)
    if not os.fork():
        print(bind(80), flush=True)
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
print(bind(80), flush=True)
"""


def test_a_child_is_who_it_becomes_and_its_parent_stays() -> None:
    words = ["run", "--link", "none", "--privileges", "host", "--"]
    done = run([str(GUISE), *words, PYTHON, "-c", FORK]).expect()
    assert done.text.splitlines() == ["ok", "no", "no", "ok"]


UNSHARE = f"""{TRY}
import ctypes, os
CLONE_NEWUSER = 0x10000000
print(bind(80), flush=True)
assert not ctypes.CDLL(None).unshare(CLONE_NEWUSER)
print(bind(80), bind(8080))
"""


# The same by clone3(2), whose number is the same for all processors; its child prints.
CLONE = UNSHARE.replace(
    "assert not ctypes.CDLL(None).unshare(CLONE_NEWUSER)",
    "held = socket.socket()  # so the child has a place\n"
    "arguments = (ctypes.c_uint64 * 8)(CLONE_NEWUSER, 0, 0, 0, 17)\n"
    "child = ctypes.CDLL(None).syscall(435, arguments, 64)\n"
    "assert child >= 0\n"
    "if child:\n"
    "    raise SystemExit(os.waitpid(child, 0)[1])",
)


@pytest.mark.parametrize("way", [UNSHARE, CLONE], ids=["unshare", "clone"])
def test_root_of_a_namespace_that_it_made_has_no_rights_on_the_stack(way: str) -> None:
    words = ["run", "--link", "none", "--privileges", "host", "--"]
    done = run([str(GUISE), *words, PYTHON, "-c", way]).expect()
    assert done.text.splitlines() == ["ok", "no ok"]


def test_a_config_is_applied_whatever_its_user_may_do(tmp_path: Path) -> None:
    """nft, which reads the ruleset, is a program on the stack; no other has its rights."""
    rules = "table inet filter { chain input { type filter hook input priority 0; }\n}"
    named = Named(tmp_path)
    config = named.write(f"privileges = \"host\"\nnftables = '''{rules}'''\n{ALONE}")
    nobody = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
    run([*nobody, GUISE, "up", config], env=named.env, cwd=tmp_path).expect()
    try:
        assert "chain input" in named.on("web", "nft", "list", "ruleset").expect().text
        done = run([*nobody, GUISE, "exec", "web", "--", "nft", "flush", "ruleset"], env=named.env)
        assert done.status and "not permitted" in done.errors, done
    finally:
        named.call("down", "web").expect()


def test_privileges_are_all_or_host() -> None:
    words = ["run", "--link", "none", "--privileges", "some", "--", "true"]
    done = run([str(GUISE), *words]).expect(2)
    assert "expected all" in done.errors


OWNER = """
import socket, subprocess
with socket.create_server(("127.0.0.1", 0)) as server:
    print(subprocess.run(["ss", "-Htlen"], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("namespace", [[], NAMESPACE])
def test_sockets_are_their_users(namespace: list[str]) -> None:
    """As the host knows it, also where the program is in a user namespace and root there."""
    words = ["run", "--link", "none", "--", *WITHOUT, *namespace, PYTHON, "-c", OWNER]
    done = run([str(GUISE), *words]).expect()
    assert re.findall(r"\buid:(\d+)", done.text) == [str(NOBODY)], done
