"""Whatever is told, in whatever order and with tries in between, the snapshot has what is sound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.nodes import Node
from tests.builders import make_node
from tests.observe.test_observer import ObserverFixture

pytestmark = pytest.mark.whole


NAMES = ("a", "b", "c")
STEPS = st.lists(
    st.tuples(st.sampled_from(["sound", "unsound", "gone", "fork", "end"]), st.sampled_from(NAMES)),
    max_size=40,
)


@given(STEPS)
def test_the_snapshot_ends_with_the_last_sound_version_of_all_that_is_there(
    steps: list[tuple[str, str]],
) -> None:
    it = ObserverFixture()
    there: set[str] = set()
    expected: dict[str, Node] = {}
    for what, name in steps:
        if what == "fork":
            it.snapshot.begin()
        elif what == "end":
            if it.snapshot.is_forked:
                it.snapshot.revert()
                it.observer.apply_deferred()
        elif what == "gone":
            if name in there:
                there.remove(name)
                expected.pop(name, None)
                it.unsay(Node, name)
        else:
            node = make_node(name).capacity(cpu="4" if what == "sound" else "-4").obj()
            there.add(name)
            if what == "sound":
                expected[name] = node
            it.say(node)
    while it.snapshot.is_forked:
        it.snapshot.revert()
    it.observer.apply_deferred()
    for name in NAMES:
        assert it.snapshot.get(Node, name) == expected.get(name)
    _lives_without_gaps(it)


def _lives_without_gaps(it: ObserverFixture) -> None:
    """Each event starts from where the one before it about the same object ended."""
    last: dict[str, object] = {}
    for event in it.events:
        key = (event.after or event.before or Node()).key
        assert event.before is last.get(key)
        assert (event.action == "added") is (event.before is None)
        assert (event.action == "deleted") is (event.after is None)
        last[key] = event.after
