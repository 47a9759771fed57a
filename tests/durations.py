"""What takes long says so: one line at the end of a run for each test that is slow or waits."""

from __future__ import annotations

import resource
import time
from collections.abc import Generator
from dataclasses import dataclass

import pytest

SLOW = 20.0
"""Seconds from which on a test has a line."""
_SECONDS, _PROCESSOR = "seconds", "processor_seconds"
_started = pytest.StashKey["Moment"]()
_lines: list[tuple[float, str]] = []


@dataclass(frozen=True, slots=True)
class Moment:
    """The wall's clock, and what this process and its ended children have used of a processor."""

    wall: float
    processor: float

    @classmethod
    def now(cls) -> Moment:
        """This moment."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.monotonic(), time.process_time() + children.ru_utime + children.ru_stime)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when a test begins."""
    item.stash[_started] = Moment.now()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send along how long it took with all that was set up for it."""
    report = yield
    if call.when == "teardown" and (began := item.stash.get(_started, None)):
        now = Moment.now()
        report.user_properties += [
            (_SECONDS, now.wall - began.wall),
            (_PROCESSOR, now.processor - began.processor),
        ]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep a line for one that took long."""
    told = dict(report.user_properties)
    seconds, processor = told.get(_SECONDS), told.get(_PROCESSOR)
    if isinstance(seconds, float) and isinstance(processor, float) and seconds >= SLOW:
        _lines.append((seconds, describe(report.nodeid, seconds, processor)))


def describe(test: str, seconds: float, processor: float) -> str:
    """One line about a slow test; one that mostly waits for others says so."""
    waited = max(0.0, seconds - processor)
    how = f"waits {waited:.0f} of {seconds:.0f} s" if waited > seconds / 2 else f"{seconds:.0f} s"
    return f"SLOW {test}: {how}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines, the slowest first."""
    for _, line in sorted(_lines, reverse=True):
        terminalreporter.write_line(line)
