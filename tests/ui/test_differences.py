"""Differences lead from the first state to what is drawn afresh, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.client import Change
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe import OBSERVED, Observer
from bayplan.ui.changelog import PageChangeLog
from bayplan.ui.picture.picture import Picture
from bayplan.ui.tables import Changes, Tables
from tests.builders import make_node, make_pod
from tests.fit.random_clusters import random_object
from tests.patience import PATIENCE
from tests.ui.pages import NOW, Noon, apply, browsing, page_of, tables_of

STEPS = st.integers(1, 60)


def as_json(changes: Changes) -> dict[str, Any]:
    return {"set": changes.set, "drop": changes.drop}


def fresh(objects: list[KubeObject]) -> dict[str, dict[str, Any]]:
    picture = Picture(Snapshot(objects), Noon().now)
    picture.draw_all()
    return {name: dict(rows) for name, rows in picture.tables}


@given(st.integers(0, 100_000), STEPS, st.integers(1, 12))
@settings(max_examples=60)
def test_differences_applied_to_the_first_state_give_what_is_drawn_afresh(
    seed: int, steps: int, every: int
) -> None:
    rng = random.Random(seed)
    there: dict[tuple[type[KubeObject], str], KubeObject] = {}
    observer = Observer(Snapshot())
    picture = Picture(observer.snapshot, lambda: NOW)
    observer.listen(picture.hear)
    page: dict[str, dict[str, Any]] = {name: {} for name, _ in picture.tables}
    for step in range(steps):
        obj = random_object(rng)
        old = there.pop((type(obj), obj.key), None)
        if type(obj) not in OBSERVED or (old is not None and rng.random() < 0.4):
            if old is not None:
                observer.handle(Change("deleted", old=old))
            continue
        there[type(obj), obj.key] = obj
        observer.handle(Change("added" if old is None else "updated", old=old, new=obj))
        if step % every == 0:
            picture.work()
            picture.finish()
            apply(page, as_json(picture.tables.take_changes()))
    picture.draw_all()
    apply(page, as_json(picture.tables.take_changes()))
    assert page == fresh(list(there.values()))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 2)))),
    st.integers(1, 5),
)
def test_tables_tell_exactly_what_changed_since_they_were_asked(
    steps: list[tuple[str, int | None]], every: int
) -> None:
    tables, mirror = Tables(), dict[str, dict[str, Any]](zones={})
    for number, (name, value) in enumerate(steps):
        if value is None:
            tables.drop("zones", name)
        else:
            tables.set("zones", [name, value])
        if number % every == 0:
            apply(mirror, as_json(tables.take_changes()))
            assert mirror["zones"] == tables["zones"]
            assert not tables.take_changes()


async def test_the_stream_leads_on_from_the_state() -> None:
    page = page_of(make_node("n1").capacity(cpu="4", memory="8Gi", pods=110).obj())
    async with browsing(page) as browser:
        state = await browser.state()
        tables = tables_of(state)
        snapshot = page.picture.snapshot
        stream = browser.changes(state["seq"])
        for number in range(3):
            pod = make_pod(f"p{number}").node("n1").obj()
            snapshot.put(pod)
            page.picture._pods[pod.key] = None
        while len(tables["pods"]) < 3:
            kind, change = await anext(stream)
            assert kind == "change"
            apply(tables, change)
        await stream.aclose()  # type: ignore[attr-defined]
        assert tables == {name: dict(rows) for name, rows in page.picture.tables}


async def test_who_asks_for_changes_that_are_forgotten_is_told_to_start_again() -> None:
    async with browsing(page_of()) as browser:
        kind, _ = await anext(browser.changes(after=17))
        assert kind == "reset"


async def test_a_client_that_is_too_slow_is_told_to_start_again_and_holds_nothing() -> None:
    change_log = PageChangeLog()
    listener = change_log.listen(0, most=1000)
    assert listener is not None
    for _ in range(50):
        change_log.add(b"x" * 100)
    assert await listener.next() is None
    assert not listener._queued
    listener.close()
    assert change_log.listeners == 0


async def test_a_journal_forgets_its_oldest_changes() -> None:
    change_log = PageChangeLog(most=10)
    for number in range(25):
        change_log.add(b"%d" % number)
    assert change_log.listen(14) is None
    listener = change_log.listen(15)
    assert listener is not None
    entries = [await asyncio.wait_for(listener.next(), PATIENCE) for _ in range(10)]
    assert [entry.seq for entry in entries if entry is not None] == list(range(16, 26))
