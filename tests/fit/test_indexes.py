"""What selects pods is found by a pod's labels as if each were asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.fit.indexes import NameIndex, SelectorIndex, required_label
from bayplan.kube.meta import LabelSelector, LabelSelectorRequirement
from bayplan.kube.selectors import Selector, compile_selector

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
EXPRESSIONS = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=KEYS,
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(VALUES, min_size=1, max_size=2),
    ),
    st.builds(
        LabelSelectorRequirement, key=KEYS, operator=st.sampled_from(["Exists", "DoesNotExist"])
    ),
)
SELECTORS = st.one_of(
    st.none(),
    st.builds(
        LabelSelector,
        match_labels=st.dictionaries(KEYS, VALUES, max_size=2),
        match_expressions=st.lists(EXPRESSIONS, max_size=2),
    ),
).map(compile_selector)


@given(
    selectors=st.lists(SELECTORS),
    gone=st.sets(st.integers(0, 5)),
    labels=st.dictionaries(KEYS, VALUES),
)
def test_no_selector_that_matches_is_missed(
    selectors: list[Selector], gone: set[int], labels: dict[str, str]
) -> None:
    hooked: SelectorIndex[tuple[int, Selector]] = SelectorIndex()
    for thing in enumerate(selectors):
        hooked.add(required_label([thing[1]]), thing)
    for index in gone & set(range(len(selectors))):
        hooked.discard(required_label([selectors[index]]), (index, selectors[index]))
    found = {index for index, one in hooked.for_labels(labels) if one.matches(labels)}
    wanted = {index for index, one in enumerate(selectors) if one.matches(labels)}
    assert found == wanted - gone


def test_members_are_found_until_they_are_discarded() -> None:
    index = NameIndex()
    index.add("claim", "pod-1")
    index.add("claim", "pod-2")
    index.discard("claim", "pod-1")
    assert index.of("claim") == {"pod-2"}


def test_nothing_is_left_of_a_name_without_members() -> None:
    index = NameIndex()
    index.add("claim", "pod")
    index.discard("claim", "pod")
    index.discard("other", "pod")
    assert index.of("claim") == frozenset()
    assert not vars(index)["_members"]
