"""A wrong value is refused before anything runs, by the command and by the chart's schema alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.autoscaler.expanders import NAMES
from bayplan.cli.main import run
from bayplan.deploy.validation import CONFLICTS
from bayplan.deploy.value_types import EXPANDER
from bayplan.deploy.values import Values, merge_values
from tests.deploy.charts import FOLDER
from tests.deploy.manifests import made, printed_objects
from tests.deploy.schemas import fits

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]
WRONG = [
    ("image", "A b"),
    ("image", ""),
    ("image", "registry.example.com/bayplan@sha256:12"),
    ("imagePullPolicy", "Sometimes"),
    ("imagePullSecrets", ["mine"]),
    ("imagePullSecrets", [{"name": "Mine"}]),
    ("imagePullSecrets", [{}]),
    ("featureGates", "Nothing=true"),
    ("featureGates", "VolumeLimitScaling"),
    ("listenAddress", "localhost"),
    ("listenAddress", "0.0.0.0:80"),
    ("listenAddress", ""),
    ("logFormat", "xml"),
    ("crds.keep", "maybe"),
    ("crds.kept", True),
    ("scheduler", None),
    ("scheduler.replicas", -1),
    ("scheduler.replicas", 1.5),
    ("scheduler.replicas", "2"),
    ("scheduler.replicas", True),
    ("scheduler.replicas", None),
    ("scheduler.replicas", 10_000_000),
    ("scheduler.lease", "No_Name"),
    ("scheduler.lease", "name\n"),
    ("scheduler.lease", "n" * 254),
    ("scheduler.schedulerNames", []),
    ("scheduler.schedulerNames", ["a b"]),
    ("scheduler.schedulerNames", "bayplan"),
    ("scheduler.resources", None),
    ("scheduler.resources.requests.cpu", "lots"),
    ("scheduler.resources.requests.cpu", -1),
    ("scheduler.resources.requests.memory", "1GB"),
    ("scheduler.resources.requests.cpus", 1),
    ("scheduler.resources.request", {}),
    ("scheduler.extraArgs", "--v=1"),
    ("scheduler.extraArgs", [1]),
    ("scheduler.extraArgs", [""]),
    ("scheduler.nodeSelector", {"a b": "c"}),
    ("scheduler.nodeSelector", {"a": "c d"}),
    ("scheduler.nodeSelector", {"a": True}),
    ("scheduler.tolerations", [{"operator": "Is"}]),
    ("scheduler.tolerations", [{"effect": "Never"}]),
    ("scheduler.tolerations", [{"keys": "a"}]),
    ("scheduler.affinity", {"nodeAffinities": {}}),
    ("scheduler.priorityClassName", "Very High"),
    ("scheduler.podAnnotations", {"a": 1}),
    ("autoscaler.cloudProvider", "abacus"),
    ("autoscaler.cloudConfigSecret", "Cloud"),
    ("autoscaler.expander", "beauty"),
    ("autoscaler.expander", ""),
    ("autoscaler.clusterApi", "yes"),
    ("webhook.failurePolicy", "ignore"),
    ("webhook.certManager", 1),
    ("nodeLimits.limits", {"aws-ebs": {}}),
    ("nodeAgent.criSocket", "run/containerd.sock"),
    ("nodeAgent.criSocket", "unix:///run/containerd.sock"),
    ("nodeAgent.imageFolder", "/var/../lib"),
    ("nodeAgent.stateFolder", ""),
    ("monitoring.interval", "30"),
    ("monitoring.interval", 30),
    ("monitoring.interval", "0s"),
    ("monitoring.interval", "5m3h"),
    ("monitoring.labels", {"a": None, "b": ["c"]}),
    ("networkPolicies.enabled", "on top"),
]
USUAL = {"enabled": True, "clusterApi": False}
NO_SCHEMA = [
    ("image", "0" * 64, "an image ID cannot be pulled"),
    ("listenAddress", "0.0.0.999", "is not an IP address"),
    ("listenAddress", "127.0.0.1", "probes and Prometheus cannot reach"),
    ("scheduler.resources.limits.cpu", "100m", "requests.cpu: 250m is more than the limit, 100m"),
    ("scheduler.affinity", {"nodeAffinity": {"needed": {}}}, "nodeAffinity.needed: unknown field"),
    ("scheduler.extraArgs", ["--nothing"], "scheduler.extraArgs: Unknown option: --nothing"),
    ("webhook.tolerations", [{}], "webhook.tolerations[0].operator: must be Exists"),
    (
        "webhook.tolerations",
        [{"operator": "Exists", "value": "a"}],
        "tolerations[0].value: must be empty",
    ),
    ("webhook.tolerations", [{"key": "a", "tolerationSeconds": 5}], "[0].effect: must be NoExec"),
    ("autoscaler.extraArgs", ["--scan-interval=soon"], "autoscaler.extraArgs: Invalid value"),
    ("autoscaler.expander", "random,price", "expander random must be the last"),
    ("nodeLimits.limits", "aws-ebs: {m5.large: many}", "nodeLimits.limits: line:1: aws-ebs"),
    ("nodeLimits.limits", "csi: [", "nodeLimits.limits: line:2: not YAML"),
]  # fmt: skip
"""What only the command can say before a daemon or the API server does."""
RIGHT = [
    ("image", "localhost:5000/b"),
    ("image", "registry.example.com/a/b_c:V1.0-x@sha256:" + "0" * 64),
    ("featureGates", "VolumeLimitScaling=false,AttachVolumeLimit=true"),
    ("listenAddress", "[::]"),
    ("scheduler.replicas", 0),
    ("scheduler.resources", {"requests": None}),
    ("scheduler.resources.requests", {"cpu": 0.5, "memory": 1000, "example.com/gpu": "1e3"}),
    ("scheduler.tolerations", [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}]),
    ("scheduler.priorityClassName", ""),
    ("autoscaler.cloudConfigSecret", ""),
    ("autoscaler.expander", "priority,least-waste"),
    ("nodeAgent.stateFolder", "/var/lib/.hidden/...x/"),
    ("monitoring.interval", "1m30s"),
]  # fmt: skip


def nested(path: str, value: object) -> dict[str, Any]:
    """A value as a file says it."""
    for step in reversed(path.split(".")):
        value = {step: value}
    assert isinstance(value, dict)
    return value


def helm_takes(said: dict[str, Any]) -> bool:
    """Whether Helm would, by the schema over the chart's own values."""
    usual = yaml.safe_load((FOLDER / "values.yaml").read_text())
    schema = json.loads((FOLDER / "values.schema.json").read_text())
    return fits(merge_values(usual, said), schema)


def refused(arguments: list[str], capsys: Captured) -> str:
    assert run(["manifests", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    (line,) = err.splitlines()
    return line


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_wrong_value_is_named_by_command_and_schema(
    path: str, value: object, tmp_path: Path, capsys: Captured
) -> None:
    file, said = tmp_path / "values.yaml", nested(path, value)
    file.write_text(yaml.safe_dump(said))
    place = path.rpartition(".")[0] if path.endswith("cpus") else path
    assert f": {place}" in refused(["-f", str(file)], capsys)
    assert f"--set {place}" in refused(["--set", f"{path}={json.dumps(value)}"], capsys)
    assert not helm_takes(said)


@pytest.mark.parametrize(("path", "value", "said"), NO_SCHEMA)
def test_what_a_schema_cannot_say_the_command_does(
    path: str, value: object, said: str, capsys: Captured
) -> None:
    assert said in refused(["--set", f"{path}={json.dumps(value)}"], capsys)


@pytest.mark.parametrize(("path", "value"), RIGHT)
def test_a_right_value_is_taken(path: str, value: object) -> None:
    assert printed_objects("--set", f"{path}={json.dumps(value)}")
    assert helm_takes(nested(path, value))


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda one: next(iter(one.when)))
def test_what_does_not_go_together_is_refused(conflict: Any, capsys: Captured) -> None:
    settings = [f"--set={path}={json.dumps(on)}" for path, on in conflict.when.items()]
    line = refused(settings, capsys)
    assert line == f"error: {next(iter(conflict.when))}: {conflict.reason}"
    said: dict[str, Any] = {}
    for path, on in conflict.when.items():
        said = merge_values(said, nested(path, on))  # type: ignore[assignment]
    assert not helm_takes(said)
    assert helm_takes(merge_values(said, {"nodeAgent": {"enabled": False}, "autoscaler": USUAL}))  # type: ignore[arg-type]


def test_both_that_publish_limits_are_not_printed_together(capsys: Captured) -> None:
    assert "would publish the same keys" in refused(["node-limits", "node-agent"], capsys)
    both = printed_objects("node-limits", "node-agent", "--set=nodeAgent.limits=false",
                           "--set=nodeAgent.images=true")  # fmt: skip
    assert {"Deployment", "DaemonSet"} <= {one["kind"] for one in both}


def test_a_value_of_the_command_line_is_not_looked_for_in_the_file(
    tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("scheduler:\n  lease: mine\n")
    said = refused(["-f", str(file), "--set", "scheduler.lease=NO"], capsys)
    assert said.startswith("error: --set scheduler.lease: ")


def test_nothing_behind_the_equals_sign_is_an_empty_text() -> None:
    (found,) = [one for one in printed_objects("autoscaler", "--set=autoscaler.cloudConfigSecret=")
                if one["kind"] == "Deployment"]  # fmt: skip
    assert "bayplan-cloud" not in json.dumps(found)


def test_a_dot_in_a_key_is_written_as_helm_has_it() -> None:
    found = printed_objects("scheduler", r"--set=scheduler.nodeSelector.kubernetes\.io/os=linux")
    assert found[-1]["spec"]["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}


def test_an_agent_goes_only_where_its_tolerations_let_it() -> None:
    (usual,) = [one for one in made("node-agent") if one["kind"] == "DaemonSet"]
    assert usual["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    none = made("node-agent", nodeAgent={"tolerations": []})
    (found,) = [one for one in none if one["kind"] == "DaemonSet"]
    assert "tolerations" not in found["spec"]["template"]["spec"]


def test_the_words_of_other_rooms_are_the_same() -> None:
    assert tuple(EXPANDER.split("|")) == NAMES
    assert helm_takes({})
    assert Values().image
