"""JSON patches and JSON merge patches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.jsontypes import clone
from bayplan.embedded.apiserver.patch.patches import apply_json_patch, apply_merge_patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
PLAIN_JSON = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_an_empty_patch_changes_nothing(document: Any) -> None:
    assert apply_json_patch(clone(document), []) == document
    if isinstance(document, dict):
        assert apply_merge_patch(clone(document), {}) == document


@given(PLAIN_JSON, PLAIN_JSON)
def test_a_merge_patch_made_of_the_difference_leads_there(before: Any, after: Any) -> None:
    assert apply_merge_patch(clone(before), _difference(before, after)) == after


def _difference(before: Any, after: Any) -> Any:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    patch = {key: None for key in before if key not in after}
    return {**patch, **{key: _difference(before.get(key), value) for key, value in after.items()}}


@given(st.dictionaries(st.sampled_from("abc"), PLAIN_JSON, min_size=1), st.data())
def test_adding_and_removing_a_key_leads_back(
    document: dict[str, Any], data: st.DataObject
) -> None:
    add = {"op": "add", "path": "/new", "value": data.draw(PLAIN_JSON)}
    remove = {"op": "remove", "path": "/new"}
    assert apply_json_patch(clone(document), [add, remove]) == document
