"""A pod that asks for what only a node has is told so, wherever in it that stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import dump, node

ASKS = {"requests": "1", "limits": "1"}


def container(where: str, key: str) -> dict[str, Any]:
    return {"name": "c", "image": "c", "resources": {where: {key: "1"}}}


@pytest.mark.parametrize("key", ["attachable-volumes-aws-ebs", "storage-attach-limits-csi-a.b"])
@pytest.mark.parametrize("place", ["containers", "initContainers", "resources", "overhead"])
@pytest.mark.parametrize("where", ASKS)
def test_explain_says_that_a_pod_cannot_ask_for_a_nodes_attach_limit(
    key: str, place: str, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "c"}]}
    if place == "overhead":
        spec["overhead"] = {key: "1"}
    elif place == "resources":
        spec["resources"] = {where: {key: "1"}}
    else:
        spec[place] = [container(where, key)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert run(["explain", "default/p", "-f", dump(tmp_path, node("n"), pod)]) == 2
    said = capsys.readouterr().err
    assert f"{key}: a pod cannot request an attach limit" in said
