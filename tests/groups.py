"""Tests of one `xdist_group` share a server, a port or a build: one worker runs them all.

Which worker ran a group is seen in every run, and a run in which a group was split fails: the
scheduler of pytest-xdist goes by names that another version of pytest may no longer give it.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

PROPERTY = "xdist_group"
_workers: defaultdict[str, set[str]] = defaultdict(set)
"""Of each group, the workers that ran a test of it."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Send the name of a test's group along with its report."""
    if mark := item.get_closest_marker("xdist_group"):
        item.user_properties.append((PROPERTY, str(mark.args[0])))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note which worker ran it."""
    group, worker = dict(report.user_properties).get(PROPERTY), getattr(report, "worker_id", "")
    if group and worker:
        _workers[str(group)].add(worker)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a group was split."""
    if split_groups() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the groups that were split."""
    for group, workers in split_groups().items():
        terminalreporter.write_line(
            f"FAILED xdist_group {group!r} ran on {', '.join(workers)}: a group runs on one worker",
            red=True,
        )


def split_groups() -> dict[str, list[str]]:
    """The groups that more than one worker ran, with those workers."""
    return {group: sorted(workers) for group, workers in _workers.items() if len(workers) > 1}
