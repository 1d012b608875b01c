# SPDX-License-Identifier: GPL-2.0-only
"""Every call of the preload library does on guise what it does on the host.

The programs beside this file consist of cases, each of which prints what its calls returned. Each
case runs on the host's loopback and on that of a stack of guise, and must print the same. Those of
names.c bring their own DNS server and need files of their own in /etc, so they run in namespaces.
What is guise's own (own.c) has its expected output here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from topology import transcript
from topology.etc import ETC
from topology.side import BUILD, GUISE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = BUILD / "libguise-preload.so"
SECONDS = 90  # a case ends itself after 60

FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
# The cases pass bad pointers on purpose.
FLAGS += ["-Wno-nonnull", "-Wno-array-bounds", "-Wno-stringop-overread", "-Wno-stringop-overflow"]


def cases(*programs: str) -> list[str]:
    """The cases of some programs, or of all, from their source."""
    found = []
    for source in sorted(HERE.glob("*.c")):
        if not programs or source.stem in programs:
            names = re.findall(r"^CASE\((\w+)\)", source.read_text("utf-8"), re.MULTILINE)
            found += [f"{source.stem}.{name}" for name in names]
    return found


APART = ("names", "files", "own")
TWINS = [case for case in cases() if not case.startswith(APART)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs."""
    folder = tmp_path_factory.mktemp("preload")
    for source in HERE.glob("*.c"):
        subprocess.run(["cc", *FLAGS, "-o", folder / source.stem, source, "-lresolv"], check=True)
    return folder


def run(*command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What it printed, and how it ended."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **(env or {})},
    )
    return f"{done.stdout}ended with {done.returncode}\n"


def on_guise(*command: str | Path, options: Sequence[str] = ()) -> list[str | Path]:
    return [GUISE, "run", "--link", "none", *options, "--", *command]


@pytest.mark.parametrize("options", [(), ("--served",)], ids=["direct", "served"])
@pytest.mark.parametrize("case", TWINS)
def test_twin(programs: Path, case: str, options: tuple[str, ...]) -> None:
    program, name = case.split(".")
    expected = run(programs / program, name)
    assert expected.endswith("ended with 0\n"), expected
    assert run(*on_guise(programs / program, name, options=options)) == expected


@pytest.mark.parametrize("words", [[], ["unsynchronized"]], ids=["as they are", "unsynchronized"])
def test_streams_of_cpp(tmp_path: Path, words: list[str]) -> None:
    program = tmp_path / "streams"
    source = HERE / "streams.cc"
    subprocess.run(["c++", "-std=c++17", "-O2", "-Wall", "-o", program, source], check=True)
    expected = run(program, *words)
    assert expected.endswith("on the host again\nended with 0\n"), expected
    assert run(*on_guise(program, *words)) == expected


@pytest.fixture(scope="session")
def joining(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, and with the same as a library that it is linked to, or loads."""
    folder = tmp_path_factory.mktemp("joining")
    source = HERE / "joining.cc"
    words: list[str | Path] = [
        "c++",
        "-std=c++17",
        "-O2",
        "-Wall",
        "-Werror",
        "-pthread",
        "-fPIC",
        source,
    ]
    shared = [*words, "-DLIBRARY", "-shared"]
    subprocess.run([*shared, "-o", folder / "loaded.so"], check=True)
    subprocess.run([*shared, "-o", folder / "linked.so"], check=True)
    subprocess.run([*words, "-o", folder / "joining"], check=True)
    linked: list[str | Path] = [folder / "linked.so", "-Wl,--no-as-needed", f"-Wl,-rpath,{folder}"]
    subprocess.run([*words, "-o", folder / "linking", *linked], check=True)
    return folder


@pytest.mark.parametrize("where", ["static", "destructor", "atexit", "on_exit", "quick_exit"])
@pytest.mark.parametrize("whose", ["the program's", "a library's", "a loaded library's"])
def test_threads_work_until_the_last_destructor_is_done(
    joining: Path, whose: str, where: str
) -> None:
    commands: dict[str, list[str | Path]] = {
        "the program's": [joining / "joining", where],
        "a library's": [joining / "linking", where, joining / "linked.so"],
        "a loaded library's": [joining / "joining", where, joining / "loaded.so"],
    }
    command = commands[whose]
    expected = run(*command)
    assert re.search(r": echoed and joined\nended with [03]\n$", expected), expected
    assert run(*on_guise(*command)) == expected


# ---- names -----------------------------------------------------------------------------------


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """A script that runs its arguments with lo alone, and the files of ETC in /etc."""
    if os.geteuid():
        pytest.skip("needs root, to make namespaces")
    for name, text in ETC.items():
        (tmp_path / name).write_text(text, "ascii")
    mounts = "".join(f"mount --bind '{tmp_path / name}' /etc/{name}\n" for name in ETC)
    unshare = "unshare --net --mount --pid --fork --kill-child --mount-proc"
    inside, script = tmp_path / "inside", tmp_path / "with-etc"
    inside.write_text(f'#!/bin/sh -e\nip link set lo up\n{mounts}"$@"\n', "utf-8")
    script.write_text(f"#!/bin/sh\nexec {unshare} '{inside}' \"$@\"\n", "utf-8")
    inside.chmod(0o755)
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("case", cases("names"))
def test_twin_of_names(programs: Path, etc: Path, case: str) -> None:
    program, name = case.split(".")
    expected = run(etc, programs / program, name)
    assert expected.endswith("ended with 0\n"), expected
    # The server of resolv.conf is on the loopback of whatever stack it is.
    assert run(etc, *on_guise(programs / program, name)) == expected


def test_localhost_has_what_the_file_has(programs: Path, etc: Path, tmp_path: Path) -> None:
    """The file has no address of it in IPv6."""
    text = ETC["hosts"].replace("::1 localhost", "::1 other")
    (tmp_path / "hosts").write_text(text, "ascii")
    expected = run(etc, programs / "names", "names_localhost")
    assert expected.endswith("ended with 0\n"), expected
    assert "::1 80" not in expected
    assert run(etc, *on_guise(programs / "names", "names_localhost")) == expected


def test_a_server_on_the_hosts_loopback_is_relayed(programs: Path, etc: Path) -> None:
    options = ["-v", "--localhost", "on"]
    ask = " ".join(str(word) for word in on_guise(programs / "own", "resolve", options=options))
    serve = "dnsmasq --no-resolv --no-hosts --user=root --pid-file --address=/guise.test/192.0.2.1"
    text = run(etc, "sh", "-ec", f"{serve}\n{ask}")
    assert '"one.guise.test", NULL, &hints, &list) = 0\n192.0.2.1\n' in text
    assert re.search(r"\b0 sockets escaped to the host\nended with 0\n$", text), text


@pytest.mark.parametrize("case", cases("files"))
def test_twin_of_files(programs: Path, etc: Path, case: str) -> None:
    """The file that stands for /etc/resolv.conf behaves like it; only the server is another."""
    program, name = case.split(".")
    expected = run(etc, programs / program, name)
    assert expected.endswith("ended with 0\n"), expected
    assert run(etc, *on_guise(programs / program, name)) == expected
    relayed = run(etc, *on_guise(programs / program, name, options=["--localhost", "on"]))
    assert relayed == expected.replace("127.0.0.1", "169.254.77.11")
    assert name != "resolv_conf_forms" or relayed.count("nameserver 169.254.77.11") == 10


# ---- guise's own -----------------------------------------------------------------------------


def test_guises_own_descriptors_cannot_be_closed(programs: Path) -> None:
    assert run(*on_guise(programs / "own", "own_descriptors")) == (
        "own > 0 && own == refused && own == hidden = 1\n"
        "fd[0] = 4\n"
        'send(fd[0], "x", 1, 0) = 1\n'
        "recv(fd[1], buf, 1, MSG_WAITALL) = 1\n"
        "ended with 0\n"
    )


def test_a_vfork_child_makes_no_socket_and_disturbs_no_table(programs: Path) -> None:
    assert run(*on_guise(programs / "own", "vfork_makes_none")) == (
        "close(socket(AF_INET, SOCK_DGRAM, 0)) = 0\n"
        "waitpid(pid, NULL, 0) == pid = 1\n"
        "made == -1 = 1\n"
        "error == ENFILE = 1\n"
        'write(fd, "x", 1) = 1\n'
        "socket(AF_INET, SOCK_DGRAM, 0) > fd = 1\n"
        "ended with 0\n"
    )


def test_a_stranger_who_is_sent_a_private_socket_holds_none(programs: Path) -> None:
    stranger = programs / "own-static"
    subprocess.run(["cc", *FLAGS, "-static", "-o", stranger, HERE / "own.c"], check=True)
    preloaded = on_guise(programs / "own", "sent_to_a_stranger", options=["--mode", "preload"])
    text = run(*preloaded, env={"STATIC": str(stranger)})
    assert text == (
        "sendmsg(way[0], &m, 0) = 1\n"
        'send(fd[0], "x", 1, MSG_NOSIGNAL) = -1 ENOTCONN\n'
        "recv(fd[0], buf, 1, 0) = -1 EINVAL\n"
        "status = 0\n"
        "ended with 0\n"
    )


def test_a_child_of_asynchronous_reads_makes_its_own(programs: Path) -> None:
    printed = run(*on_guise(programs / "own", "forks_beside_asynchronous_reads"))
    assert printed == "bad = 0\nended with 0\n"


def test_there_is_no_io_uring(programs: Path) -> None:
    text = run(*on_guise(programs / "own", "io_uring"))
    assert text == "syscall(425, 4, parameters) = -1 ENOSYS\nended with 0\n"


ENTERED = (
    "guise: own: it is in another network namespace of the host now, but its sockets are still "
    "those of its stack; what it makes of namespaces (ip netns) changes the host\n"
)


def test_a_network_namespace_of_the_host_is_said_once(programs: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root, to make a network namespace")
    assert run(*on_guise(programs / "own", "namespaces")) == (
        "unshare(CLONE_FS) = 0\n"
        "setns(before, CLONE_NEWUTS) = -1 EINVAL\n"
        f"{ENTERED}"
        "unshare(CLONE_NEWNET) = 0\n"
        "setns(before, 0) = 0\n"
        "setns(before, CLONE_NEWNET) = 0\n"
        "ended with 0\n"
    )


def test_a_child_that_is_cloned_into_a_network_namespace_says_it(programs: Path) -> None:
    """As bubblewrap makes one: by number, and in libc's way."""
    if os.geteuid():
        pytest.skip("needs root, to make a network namespace")
    assert run(*on_guise(programs / "own", "cloned_into_namespaces")) == (
        "ended(syscall(SYS_clone, CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0)) = 1\n"
        f"{ENTERED}"
        "ended(syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0)) = 1\n"
        f"{ENTERED}"
        "ended(syscall(SYS_clone3, args, sizeof(args))) = 1\n"
        f"{ENTERED}"
        "ended(clone(ends, memory + sizeof(memory), CLONE_NEWNET | SIGCHLD, NULL)) = 1\n"
        "ended with 0\n"
    )


def test_devices_that_ip_makes_are_the_stacks_and_a_namespace_is_said() -> None:
    """What `guise run` and `guise exec` start changes the stack, or says that it does not."""
    if os.geteuid():
        pytest.skip("needs root, to make a network namespace")
    name = f"gt{os.getpid()}"
    made = f"ip tuntap add {name} mode tap && ip link add {name}d type dummy && ip -br link"
    text = run(*on_guise("sh", "-c", made))
    assert f"\n{name} " in text and f"\n{name}d " in text and "guise:" not in text, text
    assert name not in run("ip", "-br", "link")
    try:
        text = run(*on_guise("ip", "netns", "add", name))
        assert re.fullmatch(r"guise: ip: .* changes the host\nended with 0\n", text), text
        text = run(*on_guise("ip", "netns", "exec", name, "echo", "inside"))
        assert re.fullmatch(r"guise: ip: .* changes the host\ninside\nended with 0\n", text), text
    finally:
        run("ip", "netns", "delete", name)


@pytest.mark.parametrize(("wish", "protocol"), [("1", 262), ("0", 6)])
def test_mptcp_is_made_of_tcp_on_request(programs: Path, wish: str, protocol: int) -> None:
    # guise run sets the variable as its own flag says, so it is given inside.
    assert run(*on_guise("env", f"GUISE_MPTCP={wish}", programs / "own", "mptcp")) == (
        f"protocol_of(AF_INET, SOCK_STREAM, 0) = {protocol}\n"
        f"protocol_of(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP) = {protocol}\n"
        "protocol_of(AF_INET, SOCK_DGRAM, 0) = 17\n"
        "ended with 0\n"
    )


def test_without_a_stack_the_library_does_nothing(programs: Path) -> None:
    program = programs / "transfer"
    expected = run(program, "transfer_forms")
    assert run(program, "transfer_forms", env={"LD_PRELOAD": str(LIBRARY)}) == expected


@pytest.mark.parametrize("ticket", ["1000", "words", "", "-1", "0"])
def test_who_cannot_join_does_not_run_on_the_host(programs: Path, ticket: str) -> None:
    env = {"LD_PRELOAD": str(LIBRARY), "GUISE_STACK": ticket}
    lines = run(programs / "own", "mptcp", env=env).splitlines()
    assert lines[-1] == "ended with 125"
    assert len(lines) == 2
    assert lines[0].startswith("guise: own: ")
    assert ticket in lines[0]


# ---- the list --------------------------------------------------------------------------------


def listed() -> set[str]:
    """The names that preload/calls.h wants to be hooks."""
    text = (ROOT / "preload" / "calls.h").read_text("utf-8")
    return set(re.findall(r"^(?:CALL|ALIAS)\((\w+),", text, re.MULTILINE))


def test_every_listed_call_has_a_hook_and_nothing_else_is_exported() -> None:
    output = subprocess.run(
        ["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True
    ).stdout
    asked_for = {"__asan_default_options", "__tsan_default_suppressions"}  # by sanitizers
    assert {line.split()[-1] for line in output.splitlines()} == listed() | asked_for


def test_each_program_has_the_cases_that_its_source_says(programs: Path) -> None:
    """What the tests run is what there is: a program prints the names of its cases."""
    for folder, said in ((programs, cases()), (transcript.PROGRAMS, transcript.cases())):
        for program in {case.split(".")[0] for case in said}:
            names = run(folder / program).splitlines()[:-1]
            assert {f"{program}.{name}" for name in names} == {
                case for case in said if case.startswith(f"{program}.")
            }


RECORD = 64  # bytes for each name: recorder/recorder.c
# The recorder is found by these itself; handle.c compares what each of them answers.
NOT_RECORDED = {"dlsym", "dlvsym"}


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library to preload that notes which calls a program makes."""
    library = tmp_path_factory.mktemp("recorder") / "recorder.so"
    flags = [*FLAGS, "-fPIC", "-shared", f"-I{ROOT}"]
    source = HERE / "recorder" / "recorder.c"
    subprocess.run(["cc", *flags, "-o", library, source], check=True)
    return library


def calls_made(recorder: Path, command: Sequence[str | Path]) -> set[str]:
    """Those that are listed, by the program or by one that it started; it runs on the host."""
    with tempfile.NamedTemporaryFile() as file:
        record = [f"LD_PRELOAD={recorder}", f"GUISE_TEST_RECORD={file.name}"]
        *before, program, case = command
        said = run(*before, "env", *record, program, case)
        assert said.endswith("ended with 0\n"), said
        data = file.read()
    records = [data[i : i + RECORD] for i in range(0, len(data), RECORD)]
    return {name[:-1].rstrip(b"\0").decode() for name in records if name[-1]}


def test_every_call_has_a_twin_that_makes_it(programs: Path, etc: Path, recorder: Path) -> None:
    """The case that is named for a call in preload/calls.h is executed, and makes the call."""
    commands: dict[str, Sequence[str | Path]] = {}
    for case in transcript.cases():
        commands[case.split(".")[1]] = transcript.host_command(case)
    for case in cases():
        program, name = case.split(".")
        commands[name] = [*([etc] if program in APART else []), programs / program, name]
    text = (ROOT / "preload" / "calls.h").read_text("utf-8")
    listed = re.findall(r"^CALL\((\w+), \w+, (\w+),", text, re.MULTILINE)
    aliases = re.findall(r"^ALIAS\((\w+), (\w+)\)", text, re.MULTILINE)
    twins = sorted({case for _, case in listed})
    assert set(twins) <= commands.keys()
    with ThreadPoolExecutor(8) as pool:  # most of them wait most of the time
        calls = pool.map(lambda case: calls_made(recorder, commands[case]), twins)
        made = dict(zip(twins, calls, strict=True))
    lacking = [
        f"{call}: {case} does not call it"
        for call, case in listed
        if call not in NOT_RECORDED
        and made[case].isdisjoint({call, *(alias for alias, of in aliases if of == call)})
    ]
    assert not lacking


def list_of_calls() -> ModuleType:
    """The generator of docs/calls.md, which reads the list."""
    spec = importlib.util.spec_from_file_location("calls_doc", ROOT / "preload" / "calls_doc.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def system_calls() -> set[str]:
    """The names that this host's headers have for numbers."""
    text = subprocess.run(
        ["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return set(re.findall(r"^#define SYS_(\w+)", text, re.MULTILINE))


def names_of_numbers(call: str) -> set[str]:
    """What the number of a call of libc may be called: pselect6, rt_sigaction, newfstatat."""
    plain = {call, call.removeprefix("_"), call.removeprefix("__")}
    plain |= {name.removesuffix("_chk") for name in plain}
    plain |= {name.replace("64", "") for name in plain}
    return plain | {
        form for name in plain for form in (f"{name}64", f"{name}6", f"{name}v2")
    }.union(f"{prefix}{name}" for name in plain for prefix in ("rt_", "new"))


def test_every_hook_that_is_a_system_call_has_its_number() -> None:
    calls = [call for group in list_of_calls().read_list() for call in group.calls]
    numbered = {number for call in calls for number in call.numbers}
    without = {
        call.name: sorted(names_of_numbers(call.name) & system_calls() - numbered)
        for call in calls
        if not call.numbers
    }
    assert {call: numbers for call, numbers in without.items() if numbers} == {}
    assert {call.name for call in calls if call.numbers} >= {"read", "pread64", "getxattr", "mmap"}


def test_every_system_call_is_a_hooks_or_has_a_reason_to_be_the_hosts() -> None:
    calls = [call for group in list_of_calls().read_list() for call in group.calls]
    numbered = [number for call in calls for number in call.numbers]
    groups = tomllib.loads((HERE / "numbers.toml").read_text("utf-8"))["host"]
    assert all(group["reason"] for group in groups)
    hosts = [number for group in groups for number in group["numbers"].split()]
    both = numbered + hosts
    assert sorted(both) == sorted(set(both))
    assert system_calls() - set(both) == set()


def test_the_library_needs_no_text_relocations() -> None:
    dynamic = subprocess.run(
        ["readelf", "-d", LIBRARY], check=True, capture_output=True, text=True
    ).stdout
    assert "TEXTREL" not in dynamic


def test_the_document_is_what_the_list_says() -> None:
    assert run(sys.executable, ROOT / "preload" / "calls_doc.py", "--check") == "ended with 0\n"
