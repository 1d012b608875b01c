# SPDX-License-Identifier: GPL-2.0-only
"""Fuzzers. Of the receive paths: a bounded number of frames over each link finds nothing in the
kernel that is shipped, and soon finds the bug in one that was built with it. Of what the host side
reads: the ring of a pair, requests to join, the messages that bring bells and links, the plan and
the texts in it, the connections that a stack's kernel lists. Of what served programs do: their
ring, with the kernel that is shipped and with the one with the bug, and messages to their
servants. Of what the other end of guise check-mptcp says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from topology.process import Finished, run
from topology.side import BUILD

LINK_FUZZ = BUILD / "unit" / "fuzz" / "link_fuzz"
RING_FUZZ = BUILD / "unit" / "fuzz" / "ring_fuzz"
STREAM_FUZZ = BUILD / "unit" / "fuzz" / "stream_fuzz"
JOIN_FUZZ = BUILD / "unit" / "fuzz" / "join_fuzz"
SERVED_RING_FUZZ = BUILD / "unit" / "fuzz" / "served_ring_fuzz"
SERVED_JOIN_FUZZ = BUILD / "unit" / "fuzz" / "served_join_fuzz"
ADDITIONS_FUZZ = BUILD / "unit" / "fuzz" / "additions_fuzz"
PLAN_FUZZ = BUILD / "unit" / "fuzz" / "plan_fuzz"
WARDEN_FUZZ = BUILD / "unit" / "fuzz" / "warden_fuzz"
CONNECTION_FUZZ = BUILD / "unit" / "fuzz" / "connection_fuzz"
NAMES_FUZZ = BUILD / "unit" / "fuzz" / "names_fuzz"
MPTCP_FUZZ = BUILD / "unit" / "fuzz" / "mptcp_fuzz"
KERNEL = BUILD / "guise-kernel"
PLANTED = BUILD / "guise-kernel-planted"
CANNOT_RUN = 77

# What comes through the host's kernel is well-formed, and nothing else arrives that way.
ANY_BYTES = ("port", "tap", "pair", "packet")
LINKS = (*ANY_BYTES, "host-tap")


def fuzz(image: Path, link: str, frames: int, seed: int = 1) -> Finished:
    options = ["--link", link, "--frames", str(frames), "--seed", str(seed)]
    done = run([LINK_FUZZ, "--image", image, *options])
    if done.status == CANNOT_RUN:
        pytest.skip(done.text.strip())
    return done


def sums(done: Finished) -> dict[str, float]:
    """The numbers of the line that a fuzzer ends with."""
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", done.text)}


@pytest.mark.parametrize("link", LINKS)
def test_frames_of_every_kind_are_delivered_or_counted_as_malformed(link: str) -> None:
    sum_of = sums(fuzz(KERNEL, link, 100_000).expect())
    assert sum_of["fed"] >= 100_000
    assert sum_of["accepted"] + sum_of["malformed"] == sum_of["fed"]
    assert sum_of["lost"] == 0
    assert sum_of["ip_rcv"] > 10_000
    assert sum_of["ipv6_rcv"] > 10_000
    if link in ANY_BYTES:
        assert sum_of["malformed"] > 5_000
    if link == "pair":  # whose other end may be hostile
        assert sum_of["sabotages"] > 100
    # Each examination: TCP over lo, echoes over the link, frames byte for byte, no warning.
    assert sum_of["examinations"] > 10


@pytest.mark.parametrize("link", ANY_BYTES)
def test_a_planted_bug_is_found(link: str) -> None:
    done = fuzz(PLANTED, link, 100_000).expect(1)
    assert re.search(r"^FOUND .* a malformed frame was accepted: \d+ bytes", done.text, re.M), done
    assert sums(done)["fed"] < 10_000


@pytest.mark.parametrize("link", ["port", "tap"])
def test_a_seed_repeats_a_run(link: str) -> None:
    def counted(seed: int) -> dict[str, float]:
        sum_of = sums(fuzz(KERNEL, link, 20_000, seed).expect())
        return {name: sum_of[name] for name in sum_of if "second" not in name}

    first = counted(5)
    assert first == counted(5)
    assert first != counted(6)


def test_a_ring_stays_within_its_bounds_whatever_the_other_end_writes() -> None:
    sum_of = sums(run([RING_FUZZ, "--turns", "1000"]).expect())
    assert sum_of["frames"] > 1_000
    assert sum_of["nonsense"] > 1_000


def test_a_stream_gives_the_frames_that_are_in_it_however_it_is_cut() -> None:
    sum_of = sums(run([STREAM_FUZZ, "--turns", "1000"]).expect())
    assert sum_of["frames"] > 10_000
    assert sum_of["sent"] > 5_000
    assert sum_of["malformed"] > 1_000
    assert sum_of["ended"] > 50


def test_anything_may_be_sent_to_a_holder_and_only_requests_are_admitted() -> None:
    done = run([JOIN_FUZZ, "--turns", "14000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["requests"] == sum_of["admitted"] + sum_of["refused"] > 4_000
    assert sum_of["admitted"] > 500
    assert sum_of["refused"] > 2_000
    assert sum_of["spoken"] > 500


def test_any_message_may_come_to_a_warden_and_it_does_what_it_may() -> None:
    done = run([WARDEN_FUZZ, "--turns", "20000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["refused"] + sum_of["done"] == 20_000
    assert sum_of["refused"] > 5_000
    assert sum_of["done"] > 1_000
    assert sum_of["given"] > 100


def test_anything_may_be_in_a_ring_and_its_servant_lives() -> None:
    done = run([SERVED_RING_FUZZ, "--turns", "5000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["calls"] > 5_000
    assert sum_of["done"] > 500
    assert sum_of["faults"] > 100
    assert sum_of["refused"] > 500
    # Each examination: servant, memory, an honest program's connection.
    assert sum_of["examined"] == 100
    assert sum_of["servants"] > 10


def test_a_planted_bug_of_the_ring_is_found() -> None:
    planted = {"GUISE_KERNEL": str(PLANTED)}
    done = run([SERVED_RING_FUZZ, "--turns", "100000"], env=planted).expect(1)
    assert re.search(r"^FOUND .* memory after the ring was written", done.text, re.M), done


def test_anything_may_be_sent_to_a_servant_and_only_proper_messages_are_answered() -> None:
    done = run([SERVED_JOIN_FUZZ, "--turns", "8000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["messages"] == 8_000
    assert sum_of["messages"] > sum_of["proper"] > 3_000
    assert sum_of["places"] > sum_of["entered"] > 50
    assert sum_of["examined"] == 200


def test_any_message_may_come_to_a_process_and_only_proper_ones_bring_bells_and_links() -> None:
    done = run([ADDITIONS_FUZZ, "--turns", "3000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["messages"] == sum_of["proper"] + sum_of["links"] + sum_of["noise"] > 3_000
    assert sum_of["proper"] > 500
    assert sum_of["links"] > 200
    assert sum_of["noise"] > 1_000
    assert sum_of["most"] == 192


def test_any_text_may_be_a_plan_and_what_is_none_is_refused_with_its_line() -> None:
    done = run([PLAN_FUZZ, "--turns", "8000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["plans"] == 8_000
    assert sum_of["taken"] > 1_000
    assert sum_of["parsed"] > 20_000


def test_any_question_may_be_asked_about_names_and_answers_are_whole() -> None:
    done = run([NAMES_FUZZ, "--turns", "200000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["queries"] == 200_000
    assert sum_of["queries"] > sum_of["answered"] > 50_000
    assert sum_of["records"] > 50_000


def test_any_answer_may_come_of_the_connections_of_a_stack() -> None:
    done = run([CONNECTION_FUZZ, "--turns", "50000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert sum_of["pieces"] == 50_000
    assert sum_of["messages"] == sum_of["connections"] + sum_of["refused"]
    assert sum_of["connections"] > 20_000
    assert sum_of["subflows"] > 2_000
    assert sum_of["refused"] > 5_000


def test_what_the_other_end_of_check_mptcp_says_may_be_anything() -> None:
    """Packets, heads of HTTP and reports."""
    done = run([MPTCP_FUZZ, "--turns", "20000"]).expect()
    print(done.text)
    sum_of = sums(done)
    assert 20_000 > sum_of["segments"] > sum_of["options"] > 5_000
    assert 20_000 > sum_of["heads"] > 5_000
    assert 20_000 > sum_of["reports"] == sum_of["same"] > 5_000


def test_wrong_usage_names_the_links() -> None:
    done = run([LINK_FUZZ, "--link", "carrier-pigeon"]).expect(2)
    assert all(link in done.errors for link in LINKS)


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
def test_many_frames(link: str) -> None:
    assert sums(fuzz(KERNEL, link, 1_000_000, seed=99).expect())["findings"] == 0
