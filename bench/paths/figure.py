# SPDX-License-Identifier: GPL-2.0-only
"""The figure: goodput and processors over the size of messages, with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot  # type: ignore[import-not-found]

from bench.paths.trial import SIDES, TESTS, Summary

STYLES = {("guise", 1): "C0o--", ("guise", 2): "C0o-", ("host", 1): "C1s--", ("host", 2): "C1s-"}


def draw(summaries: Sequence[Summary], title: str, file: Path) -> None:
    figure, axes = pyplot.subplots(2, len(TESTS), sharex=True, sharey="row", figsize=(10, 7))
    for column, test in enumerate(TESTS):
        above, below = axes[0][column], axes[1][column]
        for side in SIDES:
            for paths in (1, 2):
                of = [s for s in summaries if s.kind.test == test and s.kind.side == side]
                of = [s for s in of if s.kind.paths == paths]
                if not of:
                    continue
                sizes = [s.kind.size for s in of]
                label = f"{side}, {paths} path{'s' if paths > 1 else ''}"
                how = {"fmt": STYLES[side, paths], "capsize": 3, "label": label}
                above.errorbar(
                    sizes, [s.goodput for s in of], [s.goodput_deviation for s in of], **how
                )
                below.errorbar(
                    sizes, [s.processors for s in of], [s.processors_deviation for s in of], **how
                )
        above.set_title(test)
        below.set_xlabel("size of a message, bytes")
        below.set_xscale("log", base=2)
    axes[0][0].set_ylabel("goodput, Mbit/s")
    axes[1][0].set_ylabel("processors busy, % of the machine's")
    for row in axes:
        for ax in row:
            ax.set_ylim(bottom=0)
            ax.grid(alpha=0.3)
    axes[0][0].legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
