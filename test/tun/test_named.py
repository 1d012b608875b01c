# SPDX-License-Identifier: GPL-2.0-only
"""Programs that cannot be preloaded on stacks that are there already: guests = true in a config."""

from __future__ import annotations

from pathlib import Path

import pytest
from topology.namespace import Namespace
from topology.process import eventually
from topology.side import BUILD, PYTHON, GuiseSide, wait_until_says

JOINS = BUILD / "test" / "tun" / "joins"  # says whether it can

CONFIG = """
name = "web"
guests = {guests}
cc = "westwood"
[[link]]
kind = "tap"
addresses = ["10.77.2.2/24", "fd77:0:0:2::2/64"]
"""


@pytest.fixture
def up(guise: GuiseSide, tmp_path: Path) -> GuiseSide:
    """Commands for the stack web, which has a place for guests."""
    path = tmp_path / "web.toml"
    path.write_text(CONFIG.format(guests="true"))
    guise.call("up", path).expect()
    return guise


def test_guests_and_members_share_a_named_stack(far: Namespace, up: GuiseSide, talk: Path) -> None:
    on_web = up.command("run", "--stack", "web", "--")
    env = up.environment()
    with far.start(talk, "serve", "7000") as server:
        wait_until_says(server, "listening")
        asked = up.call("run", "--stack", "web", "--", talk, "ask", up.peer, "7000", "word")
        assert asked.expect().text == "word"
        assert "is statically linked; so it runs in a network namespace" in asked.errors
    # Two of them in one namespace: from the wire, and one by the other.
    with far.start(*on_web, talk, "serve", "80", env=env) as server:
        wait_until_says(server, "listening")
        loopback = far.start(*on_web, talk, "ask", "127.0.0.1", "80", "by lo", env=env)
        with loopback:
            assert loopback.finish().expect().text == "by lo"
        server.finish().expect()
    with far.start(*on_web, talk, "serve", "80", env=env) as server:
        wait_until_says(server, "listening")
        assert far.run(talk, "ask", up.address, "80", "from far").expect().text == "from far"
        server.finish().expect()
    # A member beside them, and what can be preloaded, as a guest.
    script = "import socket; s = socket.socket(); print(s.getsockopt(6, 13, 16))"
    assert "westwood" in up.call("run", "--stack", "web", "--", PYTHON, "-c", script).text
    show = ["sh", "-c", "echo $LD_PRELOAD; ip -br link show eth0 | cut -d' ' -f1"]
    tun = up.call("run", "--stack", "web", "--mode", "tun", "--trace-calls", "--", *show)
    assert tun.expect().text == "\neth0\n"
    assert "--trace-calls" in tun.errors and "its calls are not seen" in tun.errors
    up.call("down", "web").expect()


def test_down_waits_for_guests_and_takes_their_way_out(
    far: Namespace, up: GuiseSide, talk: Path
) -> None:
    words = up.command("run", "--stack", "web", "--", talk, "serve", "80")
    with far.start(*words, env=up.environment()) as server:
        wait_until_says(server, "listening")
        with far.start(*up.command("down", "--drain", "50s", "web"), env=up.environment()) as down:
            ended = '"ending":true'
            eventually(lambda: ended in up.call("ls", "--json").text.replace(" ", ""), "it ends")
            assert far.run(talk, "ask", up.address, "80", "last").expect().text == "last"
            server.finish().expect()
            down.finish().expect()
    assert up.call("ls", "--json").expect().text.strip() == "[]"


def test_a_stack_without_a_place_for_guests_says_what_gives_it_one(
    guise: GuiseSide, tmp_path: Path, talk: Path
) -> None:
    path = tmp_path / "web.toml"
    path.write_text(CONFIG.format(guests="false"))
    guise.call("up", path).expect()
    for mode in ("auto", "tun"):
        refused = guise.call("run", "--stack", "web", "--mode", mode, "--", talk, "serve", "80")
        assert refused.status == 126
        assert "the stack web has no namespace for programs that cannot be preloaded" in (
            refused.errors
        )
        assert "guests = true in its config" in refused.errors
    refused = guise.call("run", "--stack", "web", "--mode", "preload", "--", talk, "serve", "80")
    assert refused.status == 126 and "cannot be preloaded" in refused.errors
    refused = guise.call("run", "--stack", "web", "--mode", "tunnel", "--", talk)
    assert refused.status == 2 and '"tunnel" is none of' in refused.errors
    guise.call("down", "web").expect()


def test_a_guest_of_a_named_stack_has_no_right_to_join(up: GuiseSide) -> None:
    member = up.call("exec", "web", "--", "env", "GUISE_PRELOAD=off", JOINS).expect()
    assert "joined by descriptor" in member.text, member
    guest = up.call("run", "--stack", "web", "--mode", "tun", "--", JOINS).expect()
    assert "lets it join" in guest.text, guest
    up.call("down", "web").expect()


def test_the_stack_of_a_run_takes_guests_beside_its_own(
    far: Namespace, guise: GuiseSide, talk: Path
) -> None:
    options = ["--mode", "tun", "--name", "first"]
    with guise.start(talk, "serve", "80", options=options) as server:
        wait_until_says(server, "listening")
        [line] = [line for line in guise.call("ls").expect().text.splitlines() if "first" in line]
        stack = line.split()[0]
        asked = guise.call("run", "--stack", stack, "--", talk, "ask", "127.0.0.1", "80", "beside")
        assert asked.expect().text == "beside"
        server.finish().expect()
