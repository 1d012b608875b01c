# SPDX-License-Identifier: GPL-2.0-only
"""A bad user pointer is an error of the call, and the same one as the host's kernel gives."""

from __future__ import annotations

import errno

import pytest
from topology.process import run
from topology.side import BUILD

FAULT = BUILD / "test" / "port" / "fault"


@pytest.fixture(scope="module")
def stack() -> list[str]:
    return run([FAULT, "stack"]).expect().text.splitlines()


def test_each_call_fails_as_on_the_host(stack: list[str]) -> None:
    assert stack == run([FAULT, "host"]).expect().text.splitlines()


CALLS = ["read", "recvfrom", "recvmsg", "write", "sendto", "sendmsg", "ppoll"]
CALLS += ["epoll_ctl", "epoll_pwait", "setsockopt", "getsockopt"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("memory", ["unmapped", "no-right", "half"])
def test_bad_pointer_gives_efault(stack: list[str], call: str, memory: str) -> None:
    """Whatever the host does: these cannot succeed. (The half is enough for an option.)"""
    expected = 0 if memory == "half" and call.endswith("sockopt") else -errno.EFAULT
    assert f"tcp {call} {memory} {expected}" in stack


def test_failed_read_leaves_the_bytes_in_the_stream(stack: list[str]) -> None:
    assert "tcp read unmapped leaves 64" in stack
