"""What every test relies on: property tests judge behaviour, never how long it took; a test that
is marked `virtual` runs on an event loop whose waiting takes no time, and so do all tests of
simulated clusters (`SIMULATED`) that are not marked `wall`. With `--long`, tests that try a sample
try many.

What a test lacks that could be installed, it says and is skipped; in CI that is a failure. Programs
that none of our files can install are another matter: the head of the report names those missing,
and tests that are marked with them are left out.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from bayplan.base.garbage import unfreeze
from bayplan.base.virtualloop import VirtualLoop
from tests.samples import LONG, USUAL
from tests.tiers import is_whole, turn

for _profile in (USUAL, LONG):
    settings.register_profile(_profile, deadline=None)
settings.load_profile(USUAL)

BY_HAND = ("crictl", "critest")
"""Programs in no registry: whoever wants these tests puts them on the PATH."""
LONGEST_NAME = 120
"""Characters of a parameter that may stand in a test's name."""
_HERE = Path(__file__).parent
SIMULATED = [
    _HERE / "embedded" / folder for folder in ("control", "csi", "nodes", "simulation", "workloads")
]
"""Folders whose tests run simulated clusters, in virtual time."""


def pytest_configure(config: pytest.Config) -> None:
    """Add the plugins of this suite, and let programs under test hear Ctrl-C, to which what a shell
    runs beside itself is deaf.
    """
    for plugin in ("tests.groups", "tests.durations"):
        config.pluginmanager.import_plugin(plugin)
    if config.getoption("--long"):
        settings.load_profile(LONG)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this suite."""
    parser.addoption("--long", action="store_true", help="try many where a sample is tried")


def pytest_report_header() -> list[str]:
    """What cannot be shown on this machine."""
    return [
        f"{name} is not on the PATH, and no package has it: tests with it are left out"
        for name in BY_HAND
        if shutil.which(name) is None
    ]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whoever wants the quick tests alone does not wait until the others are read."""
    if config.getoption("-m") != "not whole" or not collection_path.is_relative_to(_HERE):
        return None
    return is_whole(collection_path) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long; leave out tests with programs that cannot be installed."""
    items.sort(key=lambda item: turn(item.path))
    lacking = [
        item
        for item in items
        if (mark := item.get_closest_marker("by_hand")) and shutil.which(mark.args[0]) is None
    ]
    if lacking:
        items[:] = [item for item in items if item not in lacking]
        config.hook.pytest_deselected(items=lacking)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case with a long text by its length: the name of a test is in each program's
    environment, which is bounded.
    """
    if isinstance(val, str | bytes) and len(val) > LONGEST_NAME:
        return f"{argname} of {len(val)}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything is there: a test that is skipped has failed."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, though CI has all that a test needs: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Commands that are run in this process say what is logged, and where; it must not last."""
    loggers = (logging.root, logging.getLogger("bayplan"))
    levels, disabled = [logger.level for logger in loggers], logging.root.manager.disable
    handlers = set(logging.root.handlers)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    for left in set(logging.root.handlers) - handlers:
        if type(left) is logging.StreamHandler:  # those of pytest are kinds of it
            logging.root.removeHandler(left)  # it writes to a stream that ends with the test
    logging.disable(disabled)


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    """Daemons and pages that run in this process freeze what is there; it must not last."""
    thresholds = gc.get_threshold()
    yield
    unfreeze()
    gc.set_threshold(*thresholds)


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Whether to try many where a sample would do."""
    return bool(request.config.getoption("--long"))


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop of a test; one marked `virtual` and `wall` has each in turn."""
    if item.get_closest_marker("virtual") and item.get_closest_marker("wall"):
        return {"wall": asyncio.new_event_loop, "virtual": VirtualLoop}
    simulated = any(item.path.is_relative_to(folder) for folder in SIMULATED)
    if (simulated and not item.get_closest_marker("wall")) or item.get_closest_marker("virtual"):
        return {"virtual": VirtualLoop}
    return {"wall": asyncio.new_event_loop}
