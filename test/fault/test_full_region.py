# SPDX-License-Identifier: GPL-2.0-only
"""A stack whose memory is used up refuses, as Linux does: program and stack live on."""

import json

import pytest
from topology.side import PYTHON, GuiseSide, program


@pytest.mark.also_without_root
def test_connections_are_refused_and_the_stack_recovers(guise: GuiseSide) -> None:
    words = ["--memory", "32M"]
    done = guise.run(PYTHON, program("fill.py"), options=words, seconds=110).expect()
    outcome = json.loads(done.text)
    assert outcome["refusal"] in ("ENOMEM", "ENOBUFS", "ENFILE"), done
    assert outcome["count"] > 100
    assert outcome["right"]
