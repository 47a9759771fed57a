"""Dumps as they come: in several files, cut, malformed, or with objects twice."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import Wire, node, pod

Captured = pytest.CaptureFixture[str]
COMMANDS = (
    ("explain", "default/p", "--no-fixes"),
    ("explain", "--all-pending", "--no-fixes"),
    ("volumes",),
    ("plan",),
)


def listed(*objects: Wire, indent: int | None = None) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, indent=indent)


def written(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


WHOLE = listed(node(), pod("p"), pod("q"))
PRETTY = listed(node(), pod("p"), pod("q"), indent=2)
YAML_CUT = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\n"
CUT: dict[str, str | bytes] = {
    "cut.json": WHOLE[:-30],
    "cut-in-a-string.json": WHOLE[: WHOLE.index("default") + 3],
    "pretty.json": PRETTY[: PRETTY.rindex("spec")],
    "cut.yaml": YAML_CUT,
    "broken.yaml": f"{json.dumps(node())}\n---\nkind: [Pod\n",
    "lines.ndjson": f"{json.dumps(node())}\n{json.dumps(pod('p'))}\n{json.dumps(pod('q'))[:-9]}",
    "items.json": json.dumps({"kind": "List", "apiVersion": "v1", "items": [node(), 7]}),
    "bytes.json": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", CUT)
def test_a_dump_that_is_cut_is_an_error_that_names_the_file(
    name: str, command: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    path = written(tmp_path, name, CUT[name])
    assert run([*command, "-f", path]) == 2
    said = capsys.readouterr()
    assert name in said.err
    assert "--partial" in said.err
    assert "Traceback" not in said.err
    assert not said.out


def test_what_is_left_of_it_can_be_asked_for(tmp_path: Path, capsys: Captured) -> None:
    path = written(tmp_path, "lines.ndjson", CUT["lines.ndjson"])
    assert run(["explain", "-f", path, "default/p", "--partial"]) == 0
    said = capsys.readouterr()
    assert "ignored: " in said.err
    assert "1 invalid object of the dump was ignored" in said.out
    # Who else waits, nobody knows.
    assert run(["explain", "-f", path, "--all-pending", "--partial"]) == 2


def test_a_gzipped_dump_that_is_cut_is_an_error(tmp_path: Path, capsys: Captured) -> None:
    path = written(tmp_path, "c.json.gz", gzip.compress(WHOLE.encode())[:-20])
    assert run(["explain", "-f", path, "default/p"]) == 2
    assert "c.json.gz: not readable as gzip" in capsys.readouterr().err


def test_a_cluster_may_be_in_several_files(tmp_path: Path, capsys: Captured) -> None:
    nodes = written(tmp_path, "nodes.json", listed(node()))
    pods = written(tmp_path, "pods.json", listed(pod("p")))
    assert run(["explain", "-f", nodes, "-f", pods, "default/p"]) == 0
    assert run(["explain", "-f", pods, "--filename", nodes, "default/p"]) == 0
    assert run(["explain", "-f", nodes, "default/p"]) == 2
    assert run(["explain", "-f", nodes, "-f", str(tmp_path / "no.json"), "default/p"]) == 2
    assert "no.json: No such file" in capsys.readouterr().err


def test_one_of_them_may_be_standard_input(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(listed(pod("p")).encode())))
    nodes = written(tmp_path, "nodes.json", listed(node()))
    assert run(["explain", "-f", nodes, "-f", "-", "default/p"]) == 0
    assert "default/p fits node n1" in capsys.readouterr().out


def test_what_is_there_twice_is_told_and_the_last_counts(tmp_path: Path, capsys: Captured) -> None:
    first = written(tmp_path, "a.json", listed(node(cpu="4"), pod("p", cpu="3")))
    second = written(tmp_path, "b.json", listed(node(cpu="2")))
    assert run(["explain", "-f", first, "-f", second, "default/p", "--no-fixes"]) == 1
    assert "duplicate object, 2 times, the last one counts: Node n1" in capsys.readouterr().err
    assert run(["explain", "-f", second, "-f", first, "default/p", "--no-fixes"]) == 0
