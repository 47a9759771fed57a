"""Whole clusters load from every form they come in."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
import yaml

from bayplan.base.values import JsonObject
from bayplan.kube.codec import encode
from bayplan.kube.manifests import LoadError, LoadResult, load
from bayplan.kube.pods import Pod
from tests.builders import make_node, make_pod, make_pvc

POD = json.loads(encode(make_pod("p").cpu("1").labels(app="web").obj()))
NODE = json.loads(encode(make_node("n").zone("z1").obj()))
CLAIM = json.loads(encode(make_pvc("c").obj()))
ALL = [POD, NODE, CLAIM]
KEYS = ["default/p", "n", "default/c"]


def keys(loaded: LoadResult) -> list[str]:
    assert [str(problem) for problem in loaded.problems] == []
    return [obj.key for obj in loaded.objects]


def as_json(value: object, **options: int) -> bytes:
    return json.dumps(value, **options).encode()  # type: ignore[arg-type]


def as_yaml(*documents: object) -> bytes:
    return yaml.safe_dump_all(documents).encode()


@pytest.mark.parametrize(
    "data",
    [
        as_json({"kind": "List", "apiVersion": "v1", "items": ALL}),
        as_json({"items": ALL, "metadata": {}, "apiVersion": "v1", "kind": "List"}, indent=4),
        as_json(ALL),
        b"\n".join(map(as_json, ALL)),
        b"".join(map(as_json, ALL)),
        b"\n\n".join(as_json(obj, indent=2) for obj in ALL) + b"\n",
        b"\xef\xbb\xbf" + as_json(ALL),
        b"  \r\n" + as_json(ALL),
        as_yaml(*ALL),
        as_yaml({"kind": "List", "apiVersion": "v1", "items": ALL}),
        as_yaml(ALL),
        b"%YAML 1.1\n# a comment\n---\n" + as_yaml(*ALL) + b"...\n---\n# nothing\n---\n",
        gzip.compress(as_json(ALL)),
        as_yaml(*ALL).replace(b"\n", b"\r\n"),
    ],
    ids=[
        "list", "indented list", "array", "lines", "joined", "indented", "byte order mark",
        "blank start", "yaml documents", "yaml list", "yaml array", "yaml trimmings", "gzip",
        "yaml with carriage returns",
    ],
)  # fmt: skip
def test_every_form_gives_the_same_objects(data: bytes) -> None:
    loaded = load(data)
    assert keys(loaded) == KEYS
    assert loaded.objects == load(as_json(ALL)).objects


def test_a_single_object_loads() -> None:
    assert keys(load(as_json(POD))) == ["default/p"]
    assert keys(load(as_yaml(POD))) == ["default/p"]


@pytest.mark.parametrize("dump", [as_json, as_yaml])
def test_items_of_a_typed_list_need_not_say_their_kind(dump: type) -> None:
    item = {key: value for key, value in POD.items() if key not in {"kind", "apiVersion"}}
    loaded = load(dump({"kind": "PodList", "apiVersion": "v1", "items": [item, item]}))
    assert keys(loaded) == ["default/p", "default/p"]
    assert loaded.objects[0].kind == "Pod"


def test_nothing_loads_from_nothing() -> None:
    for nothing in (b"", b"\n \n", b"# just a comment\n", b"---\n---\n", as_json([])):
        assert keys(load(nothing)) == []


@pytest.mark.parametrize("dump", [as_json, as_yaml])
def test_other_kinds_are_counted_and_skipped(dump: type) -> None:
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}}
    knative = {**POD, "kind": "Service", "apiVersion": "serving.knative.dev/v1"}
    loaded = load(dump([secret, POD, secret, knative]))
    assert keys(loaded) == ["default/p"]
    assert loaded.skipped == {"Secret (v1)": 2, "Service (serving.knative.dev/v1)": 1}
    assert load(dump({"kind": "SecretList", "items": [secret]})).skipped == {"SecretList": 1}


BAD: JsonObject = {**POD, "metadata": {"name": "bad"}, "spec": {"containers": [{"image": 5}]}}
UNSOUND: JsonObject = {**POD, "metadata": {"name": "unsound"}, "spec": {"containers": []}}


@pytest.mark.parametrize("dump", [as_json, as_yaml])
def test_one_bad_object_is_reported_and_the_rest_load(dump: type) -> None:
    loaded = load(dump([POD, BAD, NODE, UNSOUND, {"metadata": {"name": "kindless"}}, CLAIM]))
    assert [obj.key for obj in loaded.objects] == KEYS
    assert [(p.identity, p.path) for p in loaded.problems] == [
        ("Pod bad", "spec.containers[0].image"),
        ("Pod default/unsound", "spec.containers"),
        ("object kindless", "kind"),
    ]


def test_a_broken_line_spoils_no_other() -> None:
    lines = [as_json(POD), b'{"kind": "Pod", "metadata": {"name": "cut', as_json(NODE)]
    loaded = load(b"\n".join(lines))
    assert [obj.key for obj in loaded.objects] == ["default/p", "n"]
    assert "not JSON at byte" in str(loaded.problems[0])


def test_a_broken_yaml_document_spoils_no_other() -> None:
    text = as_yaml(POD) + b"---\nkind: [\n---\n" + as_yaml(NODE)
    loaded = load(text)
    assert [obj.key for obj in loaded.objects] == ["default/p", "n"]
    assert "not YAML" in str(loaded.problems[0])
    assert len(loaded.problems) == 1


def test_files_directories_and_standard_input_are_sources(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "b.yml").write_bytes(as_yaml(NODE))
    (tmp_path / "deep" / "c.json.gz").write_bytes(gzip.compress(as_json(CLAIM)))
    (tmp_path / "a.json").write_bytes(as_json(POD))
    (tmp_path / "notes.txt").write_text("not objects")
    (tmp_path / ".hidden.json").write_text("not looked at")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert keys(load(tmp_path)) == ["default/p", "default/c", "n"]
    assert keys(load(str(tmp_path / "a.json"))) == ["default/p"]
    assert keys(load("-", stdin=io.BytesIO(as_json(ALL)))) == KEYS


def test_a_problem_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(as_json(BAD))
    assert str(load(path).problems[0]).startswith(f"{path}: Pod bad: spec.containers[0].image: ")


def test_a_source_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="No such file"):
        load(tmp_path / "missing.json")
    with pytest.raises(LoadError, match="null"):
        load("nul\0l")
    with pytest.raises(LoadError, match="gzip"):
        load(gzip.compress(b"x" * 1000)[:-20])


def test_an_unreadable_file_in_a_directory_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(as_json(POD))[:-20])
    (tmp_path / "b.json").write_bytes(as_json(NODE))
    loaded = load(tmp_path)
    assert [obj.key for obj in loaded.objects] == ["n"]
    assert "a.json.gz: not readable as gzip" in str(loaded.problems[0])


def test_progress_is_told_now_and_then() -> None:
    told: list[tuple[str, int]] = []
    load(as_json([POD] * 5000), progress=lambda source, seen, _: told.append((source, seen)))
    assert told == [("input", 2048), ("input", 4096)]


def test_a_resize_survives_the_slimming_of_statuses() -> None:
    resizing = {"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "2"}}]}
    plain = {"containerStatuses": [{"name": "c0", "restartCount": 1}]}
    loaded = load(as_json([{**POD, "status": resizing}, {**POD, "status": plain}]))
    assert [len(pod.status.container_statuses) for pod in loaded.objects] == [1, 0]  # type: ignore[attr-defined]


def test_annotations_are_kept_but_for_kubectls_copy_of_the_object() -> None:
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "me"}
    pod = {**POD, "metadata": {"name": "p", "annotations": notes}}
    assert load(as_json(pod)).objects[0].metadata.annotations == {"keep": "me"}


@pytest.mark.parametrize(
    "text",
    [
        as_json([POD, POD])[:-40],
        b'{"kind": "List", "items": [7]}',
        b"apiVersion: v1\nitems:\n- kind: Pod\n  metadata: {name: p}\n",  # kubectl's, cut
        b"kind: List\nitems: 7\n",
        b"kind: Pod\nmetadata: {name: p\n",
        b"\xff\xfe",
    ],
)
def test_text_that_was_cut_is_told_apart_from_bad_objects(text: bytes) -> None:
    loaded = load(text)
    assert loaded.unreadable
    assert all(one in loaded.problems for one in loaded.unreadable)


def test_a_bad_object_is_readable() -> None:
    loaded = load(b"kind: Pod\nmetadata: {name: 7}\n")
    assert loaded.problems
    assert not loaded.unreadable


def test_of_objects_of_one_name_the_last_counts_and_all_are_told() -> None:
    loaded = load(encode(make_pod("p").node("a").obj()))
    loaded.join(load(encode(make_pod("p").node("b").obj())))
    loaded.join(load(encode(make_node("p").obj())))
    assert loaded.drop_repeated() == {"Pod default/p": 2}
    assert [obj.spec.node_name for obj in loaded.objects if isinstance(obj, Pod)] == ["b"]
    assert len(loaded.objects) == 2
    assert not loaded.drop_repeated()


def test_progress_tells_how_much_of_a_source_has_been_read() -> None:
    shares: list[float] = []
    load(as_json([POD] * 5000), progress=lambda _, __, share: shares.append(share))
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1
