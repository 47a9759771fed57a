"""The informer's bookkeeping: whatever a server tells, the changes describe whole lives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.client import Untyped
from bayplan.client.informers.reflector import Change, InformerCache
from bayplan.client.objects import key_of
from bayplan.client.verbs.reads import WatchEvent
from tests.client.scripted import config_map


class History:
    """What happened on a server, version by version."""

    def __init__(self) -> None:
        self.version = 0
        self.there: dict[str, Untyped] = {}
        self.events: list[WatchEvent[Untyped]] = []

    def touch(self, name: str) -> None:
        """Create the object, or change it."""
        self.version += 1
        uid = str(self.there[name]["uid"]) if name in self.there else f"uid-{self.version}"
        item: Untyped = {**config_map(name, self.version, uid), "uid": uid}
        kind = "MODIFIED" if name in self.there else "ADDED"
        self.there[name] = item
        self.events.append(WatchEvent(kind, item, str(self.version)))  # type: ignore[arg-type]

    def delete(self, name: str) -> None:
        """Delete the object if it is there."""
        if (item := self.there.pop(name, None)) is not None:
            self.version += 1
            uid = str(item["uid"])
            last: Untyped = {**config_map(name, self.version, uid), "uid": uid}
            self.events.append(WatchEvent("DELETED", last, str(self.version)))


names = st.sampled_from("abcd")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("touch"), names),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("watch"), st.just("")),
        st.tuples(st.just("list"), st.just("")),
        st.tuples(st.just("repeat"), st.just("")),
    ),
    max_size=60,
)


@given(steps)
def test_lives_have_no_gaps_however_lists_and_watches_alternate(
    plan: list[tuple[str, str]],
) -> None:
    history, store = History(), InformerCache[Untyped]()
    received: list[Change[Untyped]] = []
    seen = 0
    for step, name in plan:
        if step == "touch":
            history.touch(name)
        elif step == "delete":
            history.delete(name)
        elif step == "list":
            received += store.replace({key_of(one): one for one in history.there.values()})
            seen = len(history.events)
        else:
            # A repeated event is what a server that resumes generously would send.
            for event in history.events[seen if step == "watch" else max(0, seen - 1) :]:
                received += store.apply(event)
            seen = len(history.events)
    received += store.replace({key_of(one): one for one in history.there.values()})
    assert dict(store) == {f"here/{name}": item for name, item in history.there.items()}
    assert fold(received) == dict(store)


def fold(received: list[Change[Untyped]]) -> dict[str, Untyped]:
    """What somebody knows who only listened, and how they would notice a gap."""
    known: dict[str, Untyped] = {}
    for change in received:
        assert (change.key in known) == (change.type != "added")
        if change.type != "added":
            assert change.old is known[change.key]
        if change.type == "deleted":
            del known[change.key]
        else:
            assert change.new is not None
            known[change.key] = change.new
    return known
