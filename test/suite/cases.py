# SPDX-License-Identifier: GPL-2.0-only
"""Runs one of CPython's own suites and says of each case how it ended, as it ends.

    cases.py SUITE [--without FILE]

Each line of stdout is a JSON list: ["begins", case] or [outcome, case, reason]. Whoever reads it
knows which case a hang or a crash belongs to, and can start again without the cases that FILE
lists, one a line. As with `python3 -m test`, resources such as the internet are not used.
"""

import importlib
import json
import os
import sys
import tempfile
import traceback
import unittest
from collections.abc import Iterator
from typing import Any


def say(*words: str) -> None:
    # One write: no other output can come in between, and a crash loses nothing.
    os.write(OUT, json.dumps(words).encode() + b"\n")


class Cases(unittest.TestResult):
    """A case with failures in subtests fails once."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = ("passed", "")

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.outcome = ("passed", "")
        say("begins", test.id())

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        say(self.outcome[0], test.id(), self.outcome[1])

    def tell(self, outcome: str, test: unittest.TestCase, reason: str) -> None:
        if isinstance(test, unittest.TestCase):
            if self.outcome[0] != "failed":
                self.outcome = (outcome, reason)
        else:  # the set-up of a class or a module, before any case
            say(outcome, test.id(), reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell("failed", test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell("failed", test, self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.tell("failed", test, "".join(traceback.format_exception(*err)))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell("skipped", test, reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.tell("failed as expected", test, "")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.tell("failed", test, "succeeds unexpectedly")


def flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main() -> None:
    name, without = sys.argv[1], set()
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as file:
            without = set(file.read().splitlines())
    # test_socketserver asks for the network and uses lo alone.
    support: Any = importlib.import_module("test.support")  # CPython's, not this folder's parent
    support.use_resources = ["network"] if name == "test_socketserver" else []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found = unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")
        except unittest.SkipTest as skip:
            say("skipped", name, str(skip))
            return
        # VSOCK is no part of the stack, and hangs on some hosts.
        kept = unittest.TestSuite(
            test for test in flat(found) if test.id() not in without and "VSOCK" not in test.id()
        )
        kept.run(Cases())
        os.chdir("/")


if __name__ == "__main__":
    # stdout is this report's: what a case prints goes to stderr.
    OUT = os.dup(1)
    os.set_inheritable(OUT, False)
    os.dup2(2, 1)
    main()
