"""The store: whatever happens to objects, file, lists and watch caches tell one story."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.rest.reads import seen_as
from bayplan.embedded.apiserver.rest.selectors import SelectionPredicate, parse_labels
from bayplan.embedded.apiserver.store.database import Database, StoreError
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.store import ApiObjectStore, StaleWrite
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from tests.embedded.apiserver.store.steps import Step, carry_out, new_store

State = dict[tuple[str, str, str], str]
STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["put", "put", "put", "remove"]),
        st.sampled_from(["pods", "nodes"]),
        st.sampled_from("abc"),
        st.integers(0, 9),
    ),
    max_size=60,
)


def fields(_storage: str, obj: dict[str, Any]) -> dict[str, str]:
    return {"value": str(obj["value"])}


def state_of(store: ApiObjectStore) -> State:
    return {
        (entry.key.storage, entry.key.name, str(entry.revision)): entry.data.decode()
        for storage in ("pods", "nodes")
        for entry in store.list(storage)
    }


def replayed(store: ApiObjectStore, since: int, state: State) -> State:
    """A state after everything that the watch caches know since a revision."""
    state = dict(state)
    for storage in ("pods", "nodes"):
        cache = store.watch_cache(storage)
        for change in cache.read(cache.position_after(since)):
            name = change.entry.key.name
            for key in [key for key in state if key[:2] == (storage, name)]:
                del state[key]
            if not change.deleted:
                state[storage, name, str(change.revision)] = change.entry.data.decode()
    return state


@given(STEPS)
def test_a_reopened_file_holds_the_same_objects_at_the_same_versions(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.db")
        store = new_store(path)
        for step in steps:
            carry_out(store, step)
        expected, revision = state_of(store), store.revision
        store.close()
        again = new_store(path)
        assert (state_of(again), again.revision) == (expected, revision)
        again.close()


@given(STEPS, st.data())
def test_a_watcher_that_resumes_ends_where_a_list_is(
    steps: list[Step], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.db")
        store = new_store(path)
        seen: list[tuple[int, State]] = [(0, {})]
        for step in steps:
            carry_out(store, step)
            seen.append((store.revision, state_of(store)))
        since, state = data.draw(st.sampled_from(seen))
        if data.draw(st.booleans(), "restart"):
            store.close()
            store = new_store(path)
        if since >= store.revision - 12:
            assert replayed(store, since, state) == state_of(store)
        else:
            with suppress(StatusError):
                assert replayed(store, since, state) == state_of(store)
        store.close()


@given(STEPS)
def test_versions_only_grow(steps: list[Step]) -> None:
    store = new_store(None)
    last = 0
    for step in steps:
        carry_out(store, step)
        assert store.revision >= last
        last = store.revision
    store.close()


def labelled(store: ApiObjectStore, step: Step) -> None:
    """Like `carry_out`, with the value as a label."""
    key = ObjectKey(step.storage, "ns", step.name)
    current = store.get(key)
    labels = {"value": str(step.value % 3)}
    if step.action == "put":
        obj = {"metadata": {"name": step.name, "labels": labels}, "value": step.value}
        store.put(key, obj, current)
    elif current is not None:
        store.remove(key, current.object(), current)


@given(STEPS, STEPS)
def test_a_watcher_with_a_selector_ends_with_just_what_it_selects(
    before: list[Step], after: list[Step]
) -> None:
    store = new_store(None, history=1000)
    selector = SelectionPredicate("ns", "", parse_labels("value in (1,2)"))
    for step in before:
        labelled(store, step)
    known = {one.key.name for one in store.list("pods") if selector.matches(one)}
    position = store.watch_cache("pods").end
    for step in after:
        labelled(store, step)
    for change in store.watch_cache("pods").read(position):
        name = change.entry.key.name
        match seen_as(change, selector):
            case "ADDED":
                assert name not in known
                known.add(name)
            case "MODIFIED":
                assert name in known
            case "DELETED":
                known.remove(name)
    assert known == {one.key.name for one in store.list("pods") if selector.matches(one)}
    store.close()


def test_compaction_keeps_what_exists_and_forgets_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    store = new_store(path)
    carry_out(store, Step("put", "nodes", "old", 1))
    for value in range(100):
        carry_out(store, Step("put", "pods", "busy", value))
    store.close()
    database = Database(path)
    assert len(list(database.rows())) < 25
    database.close()
    again = new_store(path)
    assert again.get(ObjectKey("nodes", "ns", "old")) is not None
    with pytest.raises(StatusError, match="too old resource version"):
        again.watch_cache("pods").position_after(5)
    again.close()


def test_a_write_for_an_older_version_is_stale() -> None:
    store = new_store(None)
    key = ObjectKey("pods", "ns", "a")
    first = store.put(key, {"metadata": {"name": "a"}, "value": 1}, None)
    store.put(key, {"metadata": {"name": "a"}, "value": 2}, first)
    with pytest.raises(StaleWrite):
        store.put(key, {"metadata": {"name": "a"}, "value": 3}, first)
    with pytest.raises(StaleWrite):
        store.put(key, {"metadata": {"name": "a"}, "value": 3}, None)
    store.close()


def test_a_reader_that_falls_behind_is_told_so() -> None:
    store = ApiObjectStore(Database(None), fields, watch_cache_capacity=4)
    position = store.watch_cache("pods").end
    for value in range(20):
        carry_out(store, Step("put", "pods", "a", value))
    with pytest.raises(StatusError) as gone:
        store.watch_cache("pods").read(position)
    assert gone.value.code == 410
    store.close()


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a database" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        Database(path)


def test_two_servers_cannot_share_a_file(tmp_path: Path) -> None:
    first = Database(tmp_path / "data.db")
    with pytest.raises(StoreError, match="in use by another process"):
        Database(tmp_path / "data.db")
    first.close()


def test_a_listener_that_fails_stops_neither_the_write_nor_the_other_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = new_store(None)
    told: list[str] = []

    def fail(_: WatchCacheEvent) -> None:
        raise RuntimeError("no")

    store.listeners += [fail, lambda change: told.append(change.entry.key.name)]
    carry_out(store, Step("put", "pods", "a", 1))
    assert store.get(ObjectKey("pods", "ns", "a")) is not None
    assert told == ["a"]
    assert "a listener of the store failed" in caplog.text
    store.close()


def test_a_file_that_cannot_be_written_is_given_up(tmp_path: Path) -> None:
    database = Database(tmp_path / "data.db")
    store = ApiObjectStore(database, fields)
    failures: list[str] = []
    database.on_failure.append(lambda: failures.append(str(database.failure)))
    carry_out(store, Step("put", "pods", "a", 1))
    database._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match=r"data\.db: cannot be written"):
        store.put(ObjectKey("pods", "ns", "b"), {"metadata": {}, "value": "x" * 2_000_000}, None)
    assert len(failures) == 1
    for again in (database.commit, lambda: carry_out(store, Step("put", "pods", "c", 1))):
        with pytest.raises(StoreError):
            again()
    store.close()
