# SPDX-License-Identifier: GPL-2.0-only
"""mosquitto's broker and its clients, either of them on guise: messages arrive whole, once, in
order."""

from pathlib import Path

import pytest
from topology.content import blob, digest
from topology.namespace import Namespace
from topology.process import Process
from topology.side import GuiseSide, HostSide, Side, wait_until_says
from topology.unpacked import libraries, server

LINES = "".join(f"message {i}\n" for i in range(300)).encode()
BLOB = blob(2 << 20)
RUNNING = "running"


@pytest.fixture
def broker(tmp_path: Path) -> list[str | Path]:
    conf = tmp_path / "mosquitto.conf"
    conf.write_text(
        "listener 1883\nallow_anonymous true\nuser root\npersistence false\n"
        "max_queued_messages 0\nlog_dest stderr\nlog_type all\n",
        encoding="ascii",
    )
    return [server("usr/sbin/mosquitto"), "-c", conf]


def converse(
    broker: Process, publisher: Namespace | Side, subscriber: Namespace | Side, address: str = ""
) -> tuple[bytes, str]:
    """300 messages to a subscriber that is there, and a large one for those that come later.
    The broker has the address, or is in far."""

    def at(client: Namespace | Side) -> list[str]:
        there = client.peer if isinstance(client, Side) else "127.0.0.1"
        return ["-h", address or there, "-q", "2"]

    listen = ["mosquitto_sub", *at(subscriber), "-i", "listener", "-t", "lines", "-C", "300"]
    with subscriber.start(*listen) as listener:
        wait_until_says(broker, "Sending SUBACK to listener")
        publisher.run("mosquitto_pub", *at(publisher), "-t", "lines", "-l", stdin=LINES).expect()
        lines = listener.finish().expect().stdout
    publisher.run("mosquitto_pub", *at(publisher), "-t", "blob", "-r", "-s", stdin=BLOB).expect()
    kept = subscriber.run("mosquitto_sub", *at(subscriber), "-t", "blob", "-C", "1", "-N").expect()
    return lines, digest(kept.stdout)


def test_broker(host: HostSide, guise: GuiseSide, far: Namespace, broker: list[str | Path]) -> None:
    def serve(side: Side) -> tuple[bytes, str]:
        with side.serve(*broker, says=RUNNING, env=libraries()) as running:
            return converse(running, far, far, side.address)

    on_host = serve(host)
    assert on_host == (LINES, digest(BLOB))
    assert serve(guise) == on_host


@pytest.mark.parametrize("role", ["publisher", "subscriber"])
def test_client(
    host: HostSide, guise: GuiseSide, far: Namespace, broker: list[str | Path], role: str
) -> None:
    def talk(side: Side) -> tuple[bytes, str]:
        with far.start(*broker, env=libraries()) as running:
            wait_until_says(running, RUNNING)
            return converse(running, *((side, far) if role == "publisher" else (far, side)))

    on_host = talk(host)
    assert on_host == (LINES, digest(BLOB))
    assert talk(guise) == on_host
