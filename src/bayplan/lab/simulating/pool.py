"""Runs in processes of their own, some at a time.

A process makes one run: its memory is given back whole, and one that dies takes no other with it.
It writes its result to a file and says only how far it is, so nothing large goes through pipes. If
whoever started it is gone, however that came, it ends at once: nobody would read its result.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from bayplan.lab.simulating.orders import Order
from bayplan.lab.simulating.results import Results
from bayplan.lab.simulating.running import carry_out

_SPAWN = multiprocessing.get_context("spawn")
Told = Callable[[int, float], None]
"""Told the number of a run, and the share of it that is over."""
_FAILED = 1
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that came to nothing."""

    order: Order
    why: str


@dataclass(slots=True)
class _Working:
    number: int
    order: Order
    process: BaseProcess
    news: Connection
    said: str = ""


def run_all(
    orders: Sequence[Order], folder: Path, version: str, jobs: int, told: Told
) -> list[Failure]:
    """Have all runs made whose results are not in the folder yet; returns those that failed."""
    results = Results(folder, version)
    waiting: deque[tuple[int, Order]] = deque()
    for number, order in enumerate(orders):
        if results.find(order) is None:
            waiting.append((number, order))
        else:
            told(number, 1.0)
    failures: list[Failure] = []
    with _ending() as working:
        while waiting or working:
            while waiting and len(working) < jobs:
                working.append(_start(*waiting.popleft(), folder, version))
            for one in _heard(working, told):
                working.remove(one)
                failures += _ended(one, results)
                told(one.number, 1.0)
    return failures


def _start(number: int, order: Order, folder: Path, version: str) -> _Working:
    here, there = _SPAWN.Pipe(duplex=False)
    arguments = (order, folder, version, there)
    process = _SPAWN.Process(target=_work, args=arguments, name=order.title, daemon=True)
    process.start()
    there.close()
    return _Working(number, order, process, here)


def _heard(working: list[_Working], told: Told) -> list[_Working]:
    """Wait for news of any; returns those that have ended."""
    by_news = {one.news: one for one in working}
    ended = []
    ready = set(wait(list(by_news)))
    for one in [by_news[news] for news in by_news if news in ready]:
        try:
            said = one.news.recv()
        except (EOFError, OSError):
            ended.append(one)
            continue
        if isinstance(said, str):
            one.said = said
        else:
            told(one.number, said)
    return ended


def _ended(one: _Working, results: Results) -> list[Failure]:
    one.process.join(_PATIENCE)
    code = one.process.exitcode
    one.news.close()
    if code == 0 and results.find(one.order) is not None:
        return []
    killed = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return [Failure(one.order, one.said or f"its process ended without a result ({killed})")]


@contextmanager
def _ending() -> Iterator[list[_Working]]:
    """Whatever happens, no process is left."""
    working: list[_Working] = []
    try:
        yield working
    finally:
        for one in working:
            one.process.terminate()
        for one in working:
            one.process.join(_PATIENCE)
            if one.process.is_alive():
                one.process.kill()


def _work(order: Order, folder: Path, version: str, news: Connection) -> None:
    """What a process does."""
    # Ctrl-C goes to all processes of a terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)  # what daemons say in one of many runs tells nobody anything
    _end_with_parent()
    try:
        measured = carry_out(order, news.send)
        Results(folder, version).keep(order, measured)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the others go on
        news.send(f"{type(error).__name__}: {error}"[:2000])
        raise SystemExit(_FAILED) from None


def _end_with_parent() -> None:
    """Watch whoever started this process. What a run raises may be caught on its way, so it is not
    asked.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    watched = parent.sentinel

    def watch() -> None:
        wait([watched])
        os._exit(_FAILED)

    threading.Thread(target=watch, name="parent", daemon=True).start()
