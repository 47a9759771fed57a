"""`bayplan check` from the outside: exit codes, formats, codes, and whatever a dump may hold."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.checks import KINDS
from bayplan.checks.registry import RENAMED
from bayplan.cli.main import run
from tests.cli.clusters import EXAMPLE, Wire, dump, node, pod

CLUSTERS = EXAMPLE.parent / "clusters"
Captured = pytest.CaptureFixture[str]


def checked(*arguments: str) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(["check", *arguments, "-o", "json"])
    return code, json.loads(out.getvalue()) if out.getvalue() else {}


def codes(found: dict[str, Any]) -> list[str]:
    return [one["code"] for one in found["findings"]]


def test_nothing_found_is_said_and_is_fine(tmp_path: Path, capsys: Captured) -> None:
    assert run(["check", "-f", dump(tmp_path, node(), pod(nodeName="n1"))]) == 0
    assert capsys.readouterr().out.startswith("no findings\n")


def test_findings_have_a_stable_shape(tmp_path: Path) -> None:
    code, found = checked("-f", dump(tmp_path, node(), pod(cpu="8")))
    assert code == 1
    assert found["summary"] == {"error": 0, "warning": 1, "info": 0}
    (one,) = found["findings"]
    assert set(one) == {
        *("code", "severity", "about", "message", "why", "advice", "kind", "count", "examples"),
    }
    assert one["examples"] == [{"name": "default/p", "detail": ""}]
    assert {"code": "QueueBroken", "needs": ["Queue"]} in found["notChecked"]


def test_yaml_says_the_same_as_json(capsys: Captured) -> None:
    example = str(CLUSTERS / "gpu")
    _, found = checked("-f", example)
    run(["check", "-f", example, "-o", "yaml"])
    assert yaml.safe_load(capsys.readouterr().out) == found


@pytest.mark.parametrize(
    ("level", "code"), [("error", 0), ("warning", 1), ("info", 1), ("never", 0)]
)
def test_fail_on_says_what_counts(tmp_path: Path, level: str, code: int) -> None:
    file = dump(tmp_path, node(), pod(cpu="8"))
    assert checked("-f", file, "--fail-on", level)[0] == code


@pytest.mark.parametrize("flag", ["--only", "--ignore"])
def test_former_codes_are_accepted_and_named_as_deprecated(
    tmp_path: Path, capsys: Captured, flag: str
) -> None:
    assert not set(RENAMED) & set(KINDS)
    for former, code in RENAMED.items():
        assert code in KINDS
        run(["check", "-f", dump(tmp_path, node()), flag, former.lower()])
        warning = f"warning: {flag} {former}: deprecated, renamed to {code}\n"
        assert capsys.readouterr().err == warning


def test_codes_are_chosen_in_any_case_of_letters(tmp_path: Path) -> None:
    file = dump(tmp_path, node(), pod(cpu="8"), pod(name="q", nodeName="gone"))
    assert codes(checked("-f", file, "--only", "podonGONEnode")[1]) == ["PodOnGoneNode"]
    ignored = checked("-f", file, "--ignore", "PodOnGoneNode,PodsWaitForTaints")[1]
    assert codes(ignored) == ["PodsWaitForResources"]
    both = ("--only", "PodOnGoneNode", "--ignore", "PodOnGoneNode")
    assert checked("-f", file, *both) == (
        0,
        {
            "summary": {"error": 0, "warning": 0, "info": 0},
            "findings": [],
            "notChecked": [],
            "incomplete": [],
        },
    )


def test_an_unknown_code_is_bad_input_with_what_was_meant(capsys: Captured) -> None:
    assert run(["check", "-f", str(EXAMPLE), "--only", "NodeOverLimits"]) == 2
    assert "did you mean 'NodeOverLimit'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-f", "no-such-file"],
        ["-f", str(EXAMPLE), "--grace", "soon"],
        ["-f", str(EXAMPLE), "--fail-on", "maybe"],
        ["-f", str(EXAMPLE), "--groups", "no-such-file"],
        ["-f", str(EXAMPLE), "--feature-gates", "Nothing=true"],
    ],
)
def test_bad_input_is_code_2(arguments: list[str], capsys: Captured) -> None:
    assert run(["check", *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_wide_shows_every_example(tmp_path: Path, capsys: Captured) -> None:
    pods = [pod(name=f"p{n}", cpu="8") for n in range(60)]
    run(["check", "-f", dump(tmp_path, node(), *pods)])
    brief = capsys.readouterr().out
    assert "default/p0, default/p1, default/p10, and 57 more" in brief
    run(["check", "-f", dump(tmp_path, node(), *pods), "-o", "wide"])
    wide = capsys.readouterr().out
    assert "  default/p49\n" in wide
    assert "and 10 more" in wide


def test_names_cannot_steer_the_terminal(tmp_path: Path, capsys: Captured) -> None:
    odd = node()
    odd["status"]["allocatable"]["attachable-volumes-csi-\x1b[31m"] = "-1"
    run(["check", "-f", dump(tmp_path, odd)])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("cluster", [EXAMPLE, *sorted(CLUSTERS.iterdir())], ids=lambda c: c.name)
def test_what_is_found_in_the_examples_is_what_they_were_made_to_show(cluster: Path) -> None:
    expected = {
        "cluster": {"NodeWithoutDriver", "PodsWaitForScheduler", "PodsWaitForVolumes"},
        "batch": {
            *("QueueNeverAdmits", "PodsWaitForResources", "PodsWaitForGate", "PodsWaitForQueue"),
        },
        "devices": {"PodsWaitForDevices", "PodsWaitForResources", "PodsWaitForScheduler"},
        "gpu": {"PodsWaitForResources", "PodsWaitForScheduler"},
        "web-shop": {"PodsWaitForScheduler", "PodsWaitForVolumes"},
        "zonal": {
            *("PodsWaitForAffinity", "PodsWaitForResources", "PodsWaitForVolumes"),
            "VolumeOutOfReach",
        },
    }
    _, found = checked("-f", str(cluster))
    assert set(codes(found)) - {"PodsWaitBriefly"} == expected[cluster.name]


@pytest.mark.parametrize("cluster", [EXAMPLE, *sorted(CLUSTERS.iterdir())], ids=lambda c: c.name)
def test_without_the_pods_that_wait_only_what_was_planted_is_left(
    cluster: Path, tmp_path: Path
) -> None:
    """The same clusters, in the state that they would be in if everything had found its place."""
    planted = {"cluster": {"NodeWithoutDriver"}, "zonal": {"VolumeOutOfReach"}}
    objects = [
        one
        for file in sorted(cluster.glob("*.yaml"))
        for one in _objects(file)
        if not (one["kind"] == "Pod" and not one["spec"].get("nodeName"))
    ]
    _, found = checked("-f", dump(tmp_path, *objects))
    assert set(codes(found)) == planted.get(cluster.name, set())


def _objects(file: Path) -> list[Wire]:
    found: list[Wire] = []
    for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
        found += document["items"] if "items" in (document or {}) else [document or {}]
    return [one for one in found if one]


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.text(max_size=8))
KEYS = st.sampled_from(
    [
        *("metadata", "name", "namespace", "annotations", "labels", "spec", "status", "drivers"),
        *("allocatable", "count", "nodeName", "attacher", "source", "attachError", "message"),
        *("capability", "parent", "minMember", "queue", "nodeInfo", "kubeletVersion", "cpu"),
        *("allowedTopologies", "provisioner", "nodeAffinity", "required", "claimRef", "conditions"),
        *("deletionTimestamp", "creationTimestamp", "volumeName", "storageClassName", "volumes"),
        *("webhooks", "clientConfig", "service", "caBundle", "renewTime", "holderIdentity"),
        *("min", "max", "template", "csiDrivers", "nodeSelector", "capacity", "taints", "options"),
        *("expectedPods", "desiredHealthy", "attachRequired", "schedulingGates", "csi", "driver"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KIND_NAMES = st.sampled_from(
    [
        *("Node", "Pod", "CSINode", "CSIDriver", "StorageClass", "PersistentVolume"),
        *("PersistentVolumeClaim", "VolumeAttachment", "Queue", "PodGroup", "PriorityClass"),
        *("PodDisruptionBudget", "ResourceClaim", "Lease", "NodeGroup", "Service"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    ]
)
SOUND = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@SOUND
@given(st.lists(st.tuples(KIND_NAMES, st.dictionaries(KEYS, VALUES, max_size=4)), max_size=8))
def test_whatever_a_dump_holds_there_is_an_answer(
    tmp_path: Path, objects: list[tuple[str, dict[str, object]]]
) -> None:
    wire: list[Wire] = [node(), pod()]
    for number, (kind, fields) in enumerate(objects):
        wire.append({"metadata": {"name": f"x{number}"}, **fields, "kind": kind})
    code, found = checked("-f", dump(tmp_path, *wire), "--partial")
    assert code in {0, 1}
    assert set(codes(found)) <= set(KINDS)


@settings(SOUND, max_examples=12)
@given(st.sampled_from([EXAMPLE, *sorted(CLUSTERS.iterdir())]), st.integers())
def test_the_order_of_a_dump_does_not_matter(tmp_path: Path, cluster: Path, seed: int) -> None:
    objects = [one for file in sorted(cluster.glob("*.yaml")) for one in _objects(file)]
    expected = checked("-f", str(cluster))
    random.Random(seed).shuffle(objects)
    assert checked("-f", dump(tmp_path, *objects)) == expected
