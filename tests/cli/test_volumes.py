"""`bayplan volumes`: who uses a node's places for volumes, and who says how many there are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from bayplan.cli.errors import BadInput
from bayplan.cli.main import run
from bayplan.cli.options.cluster import profile_from
from tests.cli.clusters import EXAMPLE, dump, node, pod

Captured = pytest.CaptureFixture[str]


def volumes(*arguments: str) -> int:
    return run(["volumes", "-f", str(EXAMPLE), *arguments])


def test_every_node_and_driver_has_a_row(capsys: Captured) -> None:
    assert volumes() == 0
    lines = capsys.readouterr().out.split("\n\n")[1].splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["worker-a1"] == ["ebs.csi.aws.com", "4", "4", "0", "CSINode", "shop/ledger-0", "+3"]
    assert rows["old-c1"][:4] == ["kubernetes.io/aws-ebs", "2", "2", "0"]
    assert rows["worker-c2"][2:] == ["-", "-", "unregistered"]


def test_where_there_is_nothing_to_show_that_is_said(tmp_path: Path, capsys: Captured) -> None:
    assert run(["volumes", "-f", dump(tmp_path, node(), pod())]) == 0
    said = "no node has a CSI driver, an attach limit, or a volume"
    assert capsys.readouterr().out.splitlines() == [said]
    assert volumes("-n", "nobody") == 0
    assert capsys.readouterr().out.splitlines() == ["no node matches"]


def test_json_has_the_documented_shape(capsys: Captured) -> None:
    assert volumes("-o", "json") == 0
    found = json.loads(capsys.readouterr().out)["volumes"]
    full = next(one for one in found if one["node"] == "worker-c1")
    assert {key: value for key, value in full.items() if key != "volumes"} == {
        "node": "worker-c1",
        "driver": "ebs.csi.aws.com",
        "used": 4,
        "limit": 4,
        "free": 0,
        "over": 0,
        "source": "CSINode",
        "sourceDetail": "",
        "sourceRow": "",
    }
    assert full["volumes"][-1] == {
        "handle": "vol-ledger-99",
        "pods": [],
        "attachments": ["csi-ledger-99-worker-c1"],
    }


def test_yaml_says_the_same_as_json(capsys: Captured) -> None:
    volumes("-o", "json")
    as_json = json.loads(capsys.readouterr().out)
    volumes("-o", "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_wide_shows_every_volume_and_the_key_of_a_published_limit(capsys: Captured) -> None:
    assert volumes("-o", "wide") == 0
    out = capsys.readouterr().out
    assert "vol-ledger-99: no pod (VolumeAttachment csi-ledger-99-worker-c1)" in out
    assert "allocatable attachable-volumes-aws-ebs" in out


def test_the_gate_decides_whether_published_limits_are_read(capsys: Captured) -> None:
    seen = []
    for on in ("true", "false", "true"):
        volumes("-o", "json", f"--feature-gates=AttachVolumeLimit={on}")
        found = json.loads(capsys.readouterr().out)["volumes"]
        seen += [(one["limit"], one["source"]) for one in found if one["node"] == "old-c1"]
    published, table = (2, "node.status.allocatable"), (39, "fallback table")
    assert seen == [published, table, published]


def test_wide_says_which_row_of_which_table_a_limit_is(tmp_path: Path, capsys: Captured) -> None:
    key = "attachable-volumes-aws-ebs"
    ours = {**node("ours"), "status": {"allocatable": {"cpu": "4", "pods": "9", key: "25"}}}
    rules = json.dumps({key: "aws-ebs m5d.large: 27 shared"})
    ours["metadata"] = {"name": "ours", "annotations": {"bayplan.io/attach-limits": rules}}
    file = dump(tmp_path, ours)
    assert run(["volumes", "-f", file, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["volumes"]
    assert (row["limit"], row["sourceDetail"]) == (25, key)
    assert row["sourceRow"] == "aws-ebs m5d.large: 27 shared"
    assert run(["volumes", "-f", file, "-o", "wide"]) == 0
    assert "aws-ebs m5d.large: 27 shared" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_be_a_limit_is_told_and_does_not_count(
    tmp_path: Path, capsys: Captured
) -> None:
    bad = {"attachable-volumes-aws-ebs": "-5", "attachable-volumes-csi-disk.example.com": "1500m"}
    wrong = {**node("wrong"), "status": {"allocatable": {"cpu": "4", "pods": "9", **bad}}}
    file = dump(tmp_path, wrong)
    for on, said in ((True, True), (False, False), (True, True)):
        gate = f"--feature-gates=AttachVolumeLimit={on}"
        assert run(["volumes", "-f", file, "-o", "json", gate]) == 0
        out, err = capsys.readouterr()
        assert ("attachable-volumes-aws-ebs: '-5' is not a valid limit" in err) is said
        assert ("csi-disk.example.com: '1500m' is not a valid limit" in err) is said
        rows = {one["driver"]: one for one in json.loads(out)["volumes"]}
        if said:
            assert rows["kubernetes.io/aws-ebs"]["source"] == "fallback table"
            assert rows["kubernetes.io/aws-ebs"]["sourceRow"] == "aws-ebs: all other types"
            assert rows["disk.example.com"]["source"] == "unreadable limit"
            assert rows["disk.example.com"]["free"] == 0


def test_volumes_over_a_lowered_limit_are_shown(tmp_path: Path, capsys: Captured) -> None:
    limits = {"cpu": "4", "pods": "9", "attachable-volumes-aws-ebs": "2"}
    lowered = {**node("lowered"), "status": {"allocatable": limits}}
    pods = [_with_disk(number) for number in range(5)]
    file = dump(tmp_path, lowered, *pods)
    assert run(["volumes", "-f", file, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["volumes"]
    assert (row["used"], row["limit"], row["free"], row["over"]) == (5, 2, 0, 3)
    assert run(["volumes", "-f", file]) == 0
    assert "3 over" in capsys.readouterr().out


def _with_disk(number: int) -> dict[str, object]:
    disk = {"name": "v", "awsElasticBlockStore": {"volumeID": f"vol-{number}"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default"},
        "spec": {
            "nodeName": "lowered",
            "containers": [{"name": "c", "image": "c"}],
            "volumes": [disk],
        },
        "status": {"phase": "Running"},
    }


def test_the_next_node_of_each_group_promises_what_its_template_says(capsys: Captured) -> None:
    groups = EXAMPLE.parent / "groups.yaml"
    assert volumes("--groups", str(groups), "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)["volumes"]
    (large,) = [one for one in found if one["node"] == "next of large-b"]
    assert (large["limit"], large["used"], large["source"]) == (25, 0, "group template")


def test_groups_that_cannot_be_read_are_bad_input(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text("groups: []")
    assert volumes("--groups", str(file)) == 2
    assert "groups.yaml:1" in capsys.readouterr().err


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def test_the_environment_replaces_the_fallback_table(capsys: Captured) -> None:
    with environment("KUBE_MAX_PD_VOLS", "7"):
        volumes("-o", "json", "--feature-gates=AttachVolumeLimit=false")
    found = json.loads(capsys.readouterr().out)["volumes"]
    (old,) = [one for one in found if one["node"] == "old-c1"]
    assert (old["limit"], old["source"]) == (7, "KUBE_MAX_PD_VOLS")


@pytest.mark.parametrize("written", ["0", "-1", "many", "1e3", "99999999999", "٣"])
def test_an_override_that_is_no_positive_number_is_bad_input(written: str) -> None:
    with pytest.raises(BadInput, match="KUBE_MAX_PD_VOLS"):
        profile_from("", "hold-back", {"KUBE_MAX_PD_VOLS": written})


def test_a_dump_without_nodes_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    assert run(["volumes", "-f", dump(tmp_path, pod())]) == 2
    assert "no node" in capsys.readouterr().err


def test_a_dump_without_a_name_is_bad_input(capsys: Captured) -> None:
    assert run(["volumes", "-f", ""]) == 2
    assert "bayplan dump | bayplan volumes -f -" in capsys.readouterr().err


def rows_of(capsys: Captured, *arguments: str) -> list[tuple[str, str]]:
    assert volumes(*arguments, "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)["volumes"]
    return [(one["node"], one["driver"]) for one in found]


def test_rows_can_be_picked_by_node_driver_and_how_full(capsys: Captured) -> None:
    every = rows_of(capsys)
    assert rows_of(capsys, "--node", "worker-a1", "--node", "old-c1") == [
        one for one in every if one[0] in {"worker-a1", "old-c1"}
    ]
    assert rows_of(capsys, "--driver", "kubernetes.io/aws-ebs") == [
        ("old-c1", "kubernetes.io/aws-ebs")
    ]
    full = rows_of(capsys, "--over", "80%")
    assert full == rows_of(capsys, "--over", "80") == rows_of(capsys, "--over=100%")
    assert ("worker-a1", "ebs.csi.aws.com") in full
    assert ("worker-c2", "ebs.csi.aws.com") not in full


def test_the_summary_says_how_full_each_driver_is(capsys: Captured) -> None:
    assert volumes("-o", "json") == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    first = summary[0]
    assert (first["driver"], first["fullNodes"]) == ("ebs.csi.aws.com", 4)
    assert first["fullest"] == "worker-a1"
    assert first["limit"] is None  # on one node the driver has not registered
    assert volumes() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:5] == ["DRIVER", "NODES", "USED", "LIMIT", "FULL"]
    table = lines[lines.index("") + 1 :]
    assert table[1].split()[0] == "old-c1"  # the fullest come first, by name
    assert table[-1].split()[4] == "-"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--over", "lots"), "--over lots: not a percentage"),
        (("--over", "120%"), "--over 120%: not a percentage"),
        (("--over=-5%",), "--over -5%: not a percentage"),
        (("--node", "worker-a9"), "there is no node 'worker-a9'; did you mean 'worker-a"),
        (("--driver", "ebs"), "there is no driver 'ebs'"),
    ],
)
def test_what_cannot_be_picked_is_bad_input(
    arguments: tuple[str, ...], said: str, capsys: Captured
) -> None:
    assert volumes(*arguments) == 2
    assert said in capsys.readouterr().err


def test_a_pipe_gets_a_line_a_row_even_wide(capsys: Captured) -> None:
    assert volumes("-o", "wide", "--node", "worker-a1") == 0
    table = capsys.readouterr().out.split("\n\n")[1]
    assert len(table.splitlines()) == 2
