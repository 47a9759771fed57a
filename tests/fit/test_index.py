"""An index forgets names that nothing belongs to any more."""

from __future__ import annotations

from bayplan.fit.index import Index


def test_members_are_found_until_they_are_discarded() -> None:
    index = Index()
    index.add("claim", "pod-1")
    index.add("claim", "pod-2")
    index.discard("claim", "pod-1")
    assert index.of("claim") == {"pod-2"}


def test_nothing_is_left_of_a_name_without_members() -> None:
    index = Index()
    index.add("claim", "pod")
    index.discard("claim", "pod")
    index.discard("other", "pod")
    assert index.of("claim") == frozenset()
    assert not vars(index)["_members"]
