"""`bayplan manifests`: what is asked wrongly is said in a line, and what is printed can be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from bayplan.autoscaler.providers.registry import PROVIDERS
from bayplan.cli.main import build_app, run
from bayplan.deploy.components import DAEMONS
from bayplan.deploy.values import AutoscalerValues, Values
from tests.deploy.manifests import made, printed_objects

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]
ON: dict[str, Any] = {
    "featureGates": "VolumeLimitScaling=false",
    "webhook": {"certManager": True},
    "nodeLimits": {"enabled": True},
    "nodeAgent": {"enabled": True, "images": True},
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shceduler"], "unknown component; did you mean 'scheduler'?"),
        (["--set", "scheduler.replica=3"], "unknown field; did you mean 'replicas'?"),
        (["--set", "scheduler.replicas=many"], "scheduler.replicas: expected int, got str"),
        (["--set", "scheduler.replicas=-1"], "scheduler.replicas"),
        (["--set", "scheduler"], "must be NAME=VALUE"),
        (["--set", "image.tag=1"], "image"),
        (["--set", "scheduler.replicas={"], "the value is not valid YAML"),
        (["--set", "scheduler.replicas=!!int two"], "the value is not valid YAML"),
        (["--set", "image=2026-13-45", "--image", "\x01"], "--image: "),
        (["--set", "autoscaler.expander=beauty"], "autoscaler.expander: expected some of random"),
        (["--namespace", "No_Name"], "--namespace No_Name: not a valid namespace name"),
        (["--namespace", "two.labels"], "--namespace two.labels: not a valid namespace name"),
        (["--namespace", "n" * 64], "not a valid namespace name"),
        (["--version", "not a tag"], "--version not a tag"),
        (["--image", "a b"], "--image: 'a b' is not an image reference"),
        (["--feature-gates", "Nothing=true"], "unknown feature gate 'Nothing'"),
        (["-f", "/nowhere/values.yaml"], "/nowhere/values.yaml: No such file or directory"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_a_line(
    arguments: list[str], said: str, capsys: Captured
) -> None:
    assert run(["manifests", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "value", [0.5, "2026-01-01", "a\u2028b\x85c\x7fd\ufeffe", "x: y\n- {{ z }}", ["no", "1e3", "~"]]
)
def test_whatever_a_part_holds_that_is_handed_on_stays_what_it_is(
    value: object, capsys: Captured
) -> None:
    setting = f"scheduler.podAnnotations.any={json.dumps(str(value))}"
    assert run(["manifests", "scheduler", "--set", setting]) == 0
    written = yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)
    (found,) = (one for one in written if one["kind"] == "Deployment")
    assert found["spec"]["template"]["metadata"]["annotations"] == {"any": str(value)}


def test_a_wrong_value_in_a_file_is_named_with_its_line(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("scheduler:\n  replicas: two\n")
    assert run(["manifests", "-f", str(file)]) == 2
    assert f"{file}:2: scheduler.replicas" in capsys.readouterr().err


def test_a_version_is_the_tag_of_the_image_and_a_label() -> None:
    (found,) = [one for one in printed_objects("scheduler", "--version", "9.9.9")
                if one["kind"] == "Deployment"]  # fmt: skip
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/bayplan:9.9.9"
    assert found["metadata"]["labels"]["app.kubernetes.io/version"] == "9.9.9"
    assert "app.kubernetes.io/version" not in found["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize(
    ("image", "written"),
    [
        ("a.example.com:5000/b", "a.example.com:5000/b:1"),
        ("a.example.com/b:2", "a.example.com/b:2"),
        ("b@sha256:" + "0" * 64, "b@sha256:" + "0" * 64),
    ],
)
def test_an_image_gets_a_tag_if_it_has_none(image: str, written: str) -> None:
    found = printed_objects("webhook", "--image", image, "--version", "1")[-1]
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == written


def test_definitions_can_be_left_out() -> None:
    kinds = {one["kind"] for one in printed_objects("--no-crds")}
    assert "Deployment" in kinds
    assert "CustomResourceDefinition" not in kinds


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda one: one.component)
def test_every_command_of_a_pod_is_one_that_there_is(daemon: Any) -> None:
    (found,) = [one for one in made(daemon.component, **ON)
                if one["kind"] in {"Deployment", "DaemonSet"}]  # fmt: skip
    (container,) = found["spec"]["template"]["spec"]["containers"]
    words = [*container["command"][1:], *container["args"]]
    build_app(words[0]).parse_args(words, exit_on_error=False, print_error=False)


def test_every_cloud_that_can_be_chosen_exists() -> None:
    assert set(get_args(get_type_hints(AutoscalerValues)["cloud_provider"])) <= set(PROVIDERS)
    assert Values().autoscaler.cloud_provider in PROVIDERS


def test_no_pod_may_more_than_it_needs() -> None:
    """As nobody, but for the agent that talks to the runtime."""
    for one in made(*(daemon.component for daemon in DAEMONS), **ON):
        if one["kind"] not in {"Deployment", "DaemonSet"}:
            continue
        spec = one["spec"]["template"]["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        (container,) = spec["containers"]
        held = container["securityContext"]
        assert held["capabilities"] == {"drop": ["ALL"]}
        assert held["readOnlyRootFilesystem"] is True
        assert held["allowPrivilegeEscalation"] is False
        assert held["seccompProfile"] == {"type": "RuntimeDefault"}
        root = one["metadata"]["name"] == "bayplan-node-agent"
        assert held.get("runAsNonRoot") is (None if root else True)
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
