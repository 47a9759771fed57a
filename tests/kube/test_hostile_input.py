"""Whatever comes in, a load ends with objects that can be relied on and problems in plain words."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.base.values import JsonValue
from bayplan.kube.codec import KINDS, encode
from bayplan.kube.manifests import LoadError, LoadResult, load
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import MAX_INT64
from bayplan.kube.requests import pod_requests
from bayplan.kube.validation import validate
from tests.builders import make_node, make_pod, make_pv, node_term

pytestmark = pytest.mark.whole


CORPORA = Path(__file__).parents[1] / "oracle" / "corpora"
SEEDS = [
    json.loads(encode(built))
    for built in (
        make_pod("p").cpu("1").memory("1Gi").claim("c").labels(app="a").toleration("k", "v")
        .spread("zone").anti_affinity("host").node_affinity(node_term("a", "In", "b")).obj(),
        make_node("n").taint("k", "v").zone("z").image("i", size=5).obj(),
        make_pv("pv").csi("d", "h").zone("z").obj(),
    )
]  # fmt: skip

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from(["-1", "1e999", "9" * 400, "\ud800", "\x00", "8Ei", "1e-999", "", "../.."]),
    st.sampled_from([-1, 2**31, 2**63, 2**64, 10**300, 1e308, -0.0]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*path, index))


@st.composite
def mutated(draw: st.DrawFn) -> JsonValue:
    """A sound object with something else at one or two of its places."""
    tree: JsonValue = json.loads(json.dumps(draw(st.sampled_from(SEEDS))))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(list(places(tree))))
        tree = put(tree, place, draw(values))
    return tree


def put(tree: JsonValue, place: tuple[str | int, ...], value: JsonValue) -> JsonValue:
    if not place:
        return value
    parent: JsonValue = tree
    for step in place[:-1]:
        parent = parent[step]  # type: ignore[index]
    parent[place[-1]] = value  # type: ignore[index]
    return tree


def relied_on(loaded: LoadResult) -> None:
    """What every caller takes for granted of a load."""
    for obj in loaded.objects:
        assert validate(obj) is None
        if isinstance(obj, Pod):
            assert all(0 <= amount <= MAX_INT64 for amount in pod_requests(obj).values())
    for problem in loaded.problems:
        assert len(str(problem)) < 1000
        assert str(problem).isprintable()


@given(mutated())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_a_mutated_object_is_sound_or_a_problem(tree: JsonValue) -> None:
    data = json.dumps({"kind": "List", "items": [tree]}, ensure_ascii=True).encode()
    loaded = load(data)
    relied_on(loaded)
    assert len(loaded.objects) + len(loaded.problems) + loaded.skipped.total() == 1


@given(mutated())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_yaml_and_json_agree_on_a_mutated_object(tree: JsonValue) -> None:
    text = json.dumps(tree)
    as_json, as_yaml = load(text.encode()), load(b"--- " + text.encode())
    relied_on(as_yaml)
    if as_json.objects and "\\u" not in text:
        assert as_yaml.objects == as_json.objects


@given(st.binary(max_size=200))
@settings(max_examples=500)
def test_any_bytes_load_or_are_problems(data: bytes) -> None:
    with contextlib.suppress(LoadError):
        relied_on(load(data))


@given(st.data())
@settings(max_examples=300)
def test_a_damaged_dump_loads_or_is_a_problem(data: st.DataObject) -> None:
    dump = bytearray(json.dumps({"kind": "List", "items": SEEDS}).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(dump) - 1))
        dump[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with contextlib.suppress(LoadError):
        relied_on(load(bytes(dump)))


@given(st.text(alphabet="{}[]&*!|>-?:,#'\"%@` \n\tab<~01", max_size=80))
@settings(max_examples=500)
def test_any_yaml_punctuation_loads_or_is_a_problem(text: str) -> None:
    relied_on(load(text.encode()))


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b'{"kind":"Pod","spec":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        b'{"kind":"List","items":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"kind":"List","items":{"a":1}}',
        b'{"kind":"List","items":[1,"a",null,[],{}]}',
        b'{"kind":"PodList","items":[1,"a",null,[],{}]}',
        b'{"kind":5,"items":[]}',
        b'{"kind":"List\xff","items":[]}',
        b"a: " + b"x" * 10_000_000,
        b"- " * 1_000_000,
        b"? " * 100_000,
        b"\xff\xfe\x00\x00",
        b"{" + b'"a":1,' * 100_000 + b'"a":1}',
        b'{"kind":"Pod","metadata":{"name":"' + b"x" * 10_000_000 + b'"}}',
        b'{"kind":"' + b"x" * 10_000_000 + b'"}',
        b'{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":'
        b'{"cpu":"' + b"9" * 10_000_000 + b'"}}}]}}',
        b'{"kind":"Pod","metadata":{"name":"p"},"spec":{"priority":' + b"9" * 1_000_000 + b"}}",
    ],
    ids=range(18),
)  # fmt: skip
def test_hostile_documents_end_in_short_problems(data: bytes) -> None:
    loaded = load(data)
    relied_on(loaded)
    assert loaded.objects == []
    assert loaded.problems or loaded.skipped


def test_a_gzip_bomb_is_refused() -> None:
    bomb = gzip.compress(gzip.compress(b"\0" * (100 << 20), 9), 9)
    relied_on(load(bomb))
    with pytest.raises(LoadError, match="more than"):
        load(gzip.compress(b" " * (100 << 20), 9))


def test_problems_are_listed_within_bounds() -> None:
    loaded = load(b"[" + b"{}," * 20_000 + b"{}]")
    assert len(loaded.problems) == 10_001
    assert "more problems" in str(loaded.problems[-1])


@pytest.mark.parametrize("corpus", ["scheduler", "preemption"])
def test_every_object_of_the_recorded_clusters_loads(corpus: str) -> None:
    problems, count = [], 0
    with gzip.open(CORPORA / f"{corpus}.ndjson.gz") as lines:
        for line in lines:
            case = json.loads(line)
            loaded = load(json.dumps([*case["objects"], case["pod"]]).encode())
            problems += loaded.problems
            count += len(loaded.objects)
            assert not loaded.skipped
    assert problems == []
    assert count > 1000


def test_every_kind_can_be_seen_in_a_dump() -> None:
    items = [{"kind": kind.name, "metadata": {"name": "x"}} for kind in KINDS.values()]
    loaded = load(json.dumps(items).encode())
    assert len(loaded.objects) + len(loaded.problems) == len(KINDS)
    assert any(isinstance(obj, Node) for obj in loaded.objects)
