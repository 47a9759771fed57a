"""The chart, Kustomize's folders and `bayplan manifests` say the same."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bayplan.deploy.artifacts import CHART, DEFAULT_COMPONENTS, KUSTOMIZE, render_files
from bayplan.deploy.components import COMPONENTS
from bayplan.deploy.validation import json_schema
from bayplan.deploy.values import Values
from tests.deploy.charts import FOLDER, rendered
from tests.deploy.manifests import DEPLOY, made, printed, printed_objects
from tests.deploy.pages import PAGE, page
from tests.kubectl import KUBECTL, needs_kubectl
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


ALL = tuple(one.name for one in COMPONENTS)
OTHERS: dict[str, Any] = {
    "image": "registry.example.com/mine@sha256:" + "0" * 64,
    "imagePullSecrets": [{"name": "mine"}],
    "featureGates": "VolumeLimitScaling=false",
    "scheduler": {
        "replicas": 3,
        "schedulerNames": ["bayplan", "default-scheduler"],
        "extraArgs": ["--missing-driver=opt-in", "--scheduler-name={{ y }} \"é😀\", #"],
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"operator": "Exists"}],
        "podAnnotations": {"a": "true"},
    },
    "autoscaler": {"cloudConfigSecret": "", "clusterApi": True},
    "webhook": {
        "certManager": True,
        "failurePolicy": "Ignore",
        "resources": {"requests": {"memory": "1Gi", "cpu": None}, "limits": {"memory": "1Gi"}},
    },
    "nodeLimits": {"enabled": True, "limits": "csi: {d: {'*': 8}}\n"},
    "nodeAgent": {"enabled": True, "images": True, "limits": False},
    "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicies": {"enabled": True},
}  # fmt: skip


def keyed(objects: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Objects by kind and name, each only once."""
    listed = [((one["kind"], one["metadata"]["name"]), one) for one in objects]
    assert len({key for key, _ in listed}) == len(listed)
    return dict(listed)


def test_what_is_checked_in_is_what_the_source_gives() -> None:
    written = {
        str(path.relative_to(DEPLOY)): path.read_text()
        for path in DEPLOY.rglob("*")
        if path.is_file() and "overlays" not in path.parts
    }
    assert written == render_files(), "`make manifests` writes them anew"


@needs_kubectl
def test_kustomize_gives_what_the_command_prints() -> None:
    built = _kustomized(DEPLOY / KUSTOMIZE / "base")
    assert keyed(built) == keyed(made(*DEFAULT_COMPONENTS))
    assert keyed(built) == keyed(printed_objects())


@needs_kubectl
def test_every_component_of_kustomize_can_be_added(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY / KUSTOMIZE, tmp_path / "k")
    others = [name for name in ALL if name not in DEFAULT_COMPONENTS]
    listing = {"resources": ["../k/base"], "components": [f"../k/components/{x}" for x in others]}
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "kustomization.yaml").write_text(yaml.safe_dump(listing))
    on: dict[str, Any] = {"nodeLimits": {"enabled": True}, "nodeAgent": {"enabled": True}}
    assert keyed(_kustomized(tmp_path / "o")) == keyed(made(*ALL, **on))


@needs_kubectl
def test_an_overlay_moves_everything_to_its_namespace() -> None:
    built = _kustomized(DEPLOY / KUSTOMIZE / "overlays" / "example")
    namespaces = {one["metadata"].get("namespace") for one in built}
    assert namespaces == {"bayplan-system", None}
    assert "kube-system" not in yaml.safe_dump(
        [one for one in built if "CustomRes" not in one["kind"]]
    )


def test_the_chart_gives_what_the_command_prints() -> None:
    assert keyed(rendered(crds={"keep": False})) == keyed(made(*DEFAULT_COMPONENTS))


@pytest.mark.parametrize("others", [{}, OTHERS], ids=["usual", "others"])
def test_the_chart_does_with_values_what_the_command_does(
    others: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(others))
    shown = printed_objects("-f", str(file), "-n", "else")
    kept = {**others, "crds": {"keep": False}}
    assert keyed(rendered("else", **kept)) == keyed(shown)


def test_what_is_printed_as_json_is_the_same() -> None:
    listed = msgspec.json.decode(printed("-o", "json"))
    assert keyed(listed["items"]) == keyed(printed_objects())


def test_the_charts_values_are_the_types() -> None:
    usual = yaml.safe_load((FOLDER / "values.yaml").read_text())
    assert msgspec.convert(usual, Values) == Values()
    assert set(json_schema()["properties"]) == {*usual, "global"}
    assert yaml.safe_load((DEPLOY / CHART / "Chart.yaml").read_text())["apiVersion"] == "v2"


def test_definitions_outlive_a_release_unless_somebody_says_otherwise() -> None:
    kept = [one for one in rendered() if one["kind"] == "CustomResourceDefinition"]
    assert len(kept) == 3
    for one in kept:
        assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def _kustomized(folder: Path) -> list[Mapping[str, Any]]:
    command = [KUBECTL, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_the_page_says_what_the_source_grants() -> None:
    assert PAGE.read_text() == page(), "`make manifests` writes it anew"
