"""The real kubectl drives the server: everything that a user's first hour consists of."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.http_client import Http
from tests.kubectl import Kubectl, needs_kubectl, printed_lines, runner
from tests.patience import PATIENCE

pytestmark = [pytest.mark.whole, needs_kubectl]
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: example/web:1
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 100m}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: one}}
spec:
  containers: [{name: main, image: example/one:1}]
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crates.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Crate, plural: crates, shortNames: [cr8]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer, minimum: 1}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
CRATE = """
apiVersion: example.com/v1
kind: Crate
metadata: {name: big}
spec: {size: 9}
"""


@pytest.fixture
def config(server: ApiServer, tmp_path: Path) -> Path:
    """The kubeconfig of the test's server."""
    path = tmp_path / "kubeconfig"
    path.write_text(server.kubeconfig)
    return path


@pytest.fixture
def kubectl(config: Path, tmp_path: Path) -> Kubectl:
    """Runs kubectl against the test's server."""
    return runner(config, tmp_path)


async def test_apply_get_and_describe(kubectl: Kubectl) -> None:
    assert "created" in (await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)).out
    assert "unchanged" in (await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)).out
    shown = (await kubectl("get", "deploy", "web", "-o", "wide")).out.split()
    assert shown[:8] == [
        "NAME",
        "READY",
        "UP-TO-DATE",
        "AVAILABLE",
        "AGE",
        "CONTAINERS",
        "IMAGES",
        "SELECTOR",
    ]
    assert {"web", "0/2", "main", "example/web:1", "app=web"} <= set(shown)
    described = (await kubectl("describe", "deploy", "web")).out
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in described


async def test_a_pod_is_shown_wide(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    header, row = (await kubectl("get", "pods", "-o", "wide")).out.splitlines()
    assert header.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["one", "0/1", "Pending", "0"]
    assert "QoS Class:" in (await kubectl("describe", "pod", "one")).out


async def test_editing_by_patch_label_annotate_and_scale(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    patch = (
        '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example/web:2"}]}}}}'
    )
    await kubectl("patch", "deploy", "web", "-p", patch)
    await kubectl("label", "deploy", "web", "tier=front")
    await kubectl("annotate", "deploy", "web", "note=seen")
    await kubectl("scale", "deploy", "web", "--replicas=5")
    found = json.loads((await kubectl("get", "deploy", "web", "-o", "json")).out)
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["ports"][0]["containerPort"]) == ("example/web:2", 80)
    assert found["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert found["metadata"]["annotations"]["note"] == "seen"
    assert found["spec"]["replicas"] == 5


async def test_a_misspelled_field_is_refused(kubectl: Kubectl) -> None:
    wrong = DEPLOYMENT.replace("replicas", "replica")
    refused = await kubectl("apply", "-f", "-", stdin=wrong, ok=False)
    assert refused.code == 1
    assert 'unknown field "spec.replica"' in refused.err


async def test_a_list_is_applied_item_by_item(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{POD}")
    listed = (await kubectl("get", "deploy,pods", "-o", "json")).out
    assert json.loads(listed)["kind"] == "List"
    again = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    applied = (await kubectl(*again, stdin=listed)).out
    assert applied.count("serverside-applied") == 2


async def test_a_misspelled_field_in_a_list_is_refused(kubectl: Kubectl) -> None:
    items = DEPLOYMENT.replace("replicas", "replica").strip().replace("\n", "\n  ")
    wrong = f"apiVersion: v1\nkind: List\nitems:\n- {items}\n"
    refused = await kubectl("apply", "-f", "-", stdin=wrong, ok=False)
    assert 'unknown field "spec.replica"' in refused.err


async def test_a_kind_that_nobody_serves_is_named(kubectl: Kubectl) -> None:
    for wrong in (DEPLOYMENT.replace("Deployment", "Deploymnet"), CRATE):
        refused = await kubectl("apply", "-f", "-", stdin=wrong, ok=False)
        assert refused.code == 1
        assert "no matches for kind" in refused.err


async def test_diff_shows_what_apply_would_change(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    changed = DEPLOYMENT.replace("web:1", "web:2")
    different = await kubectl("diff", "-f", "-", stdin=changed, ok=False)
    assert different.code == 1
    assert "+      - image: example/web:2" in different.out
    same = await kubectl("diff", "-f", "-", stdin=DEPLOYMENT)
    assert same.out == ""


async def test_delete_and_wait(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    waiting = asyncio.create_task(kubectl("wait", "--for=delete", "pod/one", "--timeout=300s"))
    await kubectl("delete", "pod", "one")
    assert (await waiting).code == 0
    assert "NotFound" in (await kubectl("get", "pod", "one", ok=False)).err


async def test_waiting_for_a_condition(kubectl: Kubectl, http: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    waiting = asyncio.create_task(
        kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=300s")
    )
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await http.patch("/api/v1/namespaces/default/pods/one/status", status)
    assert "condition met" in (await waiting).out


async def test_rollout_status_follows_a_deployment(kubectl: Kubectl, http: Http) -> None:
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    following = asyncio.create_task(kubectl("rollout", "status", "deploy/web", "--timeout=300s"))
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    status = {"status": {"observedGeneration": 1, **dict.fromkeys(counts, 2)}}
    await http.patch("/apis/apps/v1/namespaces/default/deployments/web/status", status)
    assert "successfully rolled out" in (await following).out


async def test_watching_shows_changes(config: Path, tmp_path: Path, http: Http) -> None:
    async def create(number: int) -> str:
        made = {"metadata": {"name": f"watched-{number}", "labels": {"app": "watched"}}}
        await http.post("/api/v1/namespaces/default/configmaps", made)
        return f"configmap/watched-{number}"

    first = await create(0)
    words = ("get", "configmaps", "--selector=app=watched", "--watch", "--output=name")
    async with asyncio.timeout(PATIENCE), printed_lines(config, tmp_path, *words) as lines:
        assert await anext(lines) == first  # it has listed, and watches from there
        for number in range(1, 10):
            assert await create(number) == await anext(lines)


async def test_auth_can_i_answers(kubectl: Kubectl) -> None:
    assert (await kubectl("auth", "can-i", "create", "pods")).out.strip() == "yes"
    assert "system:masters" in (await kubectl("auth", "whoami")).out
    assert "*.*" in (await kubectl("auth", "can-i", "--list")).out


async def test_auth_can_i_says_no_under_rbac(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret-token,ann,1,"dev"\n')
    config = ServerConfig(tokens=tokens, authorization="rbac")
    async with ApiServer(config) as server:
        path = tmp_path / "kubeconfig"
        path.write_text(server.kubeconfig.replace(server.admin_token, "secret-token"))
        kubectl = runner(path, tmp_path)
        answer = await kubectl("auth", "can-i", "list", "secrets", ok=False)
        refused = await kubectl("get", "secrets", ok=False)
    assert answer.out.strip() == "no"
    assert 'User "ann" cannot list resource "secrets"' in refused.err


async def test_api_resources_lists_every_kind(kubectl: Kubectl) -> None:
    listed = (await kubectl("api-resources", "-o", "name")).out.split()
    wanted = "pods nodes deployments.apps csinodes.storage.k8s.io leases.coordination.k8s.io"
    assert set(wanted.split()) <= set(listed)
    shown = (await kubectl("api-resources", "--api-group=apps")).out
    assert "deploy" in shown


async def test_explain_knows_the_fields(kubectl: Kubectl) -> None:
    assert "schedulingGates" in (await kubectl("explain", "pod.spec")).out


async def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    await kubectl(*apply, stdin=DEPLOYMENT)
    await kubectl("scale", "deploy", "web", "--replicas=7")
    refused = await kubectl(*apply, stdin=DEPLOYMENT, ok=False)
    assert "Apply failed with 1 conflict" in refused.err
    assert ".spec.replicas" in refused.err
    await kubectl(*apply, "--force-conflicts", stdin=DEPLOYMENT)
    found = await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
    assert found.out == "2"


async def test_custom_resources_work_as_soon_as_they_are_defined(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=CRD)
    await kubectl("wait", "--for=condition=Established", "crd/crates.example.com", "--timeout=300s")
    await kubectl("apply", "-f", "-", stdin=CRATE)
    header, row = (await kubectl("get", "cr8")).out.splitlines()
    assert (header.split(), row.split()) == (["NAME", "SIZE"], ["big", "9"])
    refused = await kubectl("apply", "-f", "-", stdin=CRATE.replace("9", "0"), ok=False)
    assert "should be greater than or equal to 1" in refused.err


async def test_typed_commands_that_speak_protobuf(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("-n", "team", "create", "configmap", "settings", "--from-literal=a=b")
    await kubectl("-n", "team", "create", "deployment", "app", "--image=example/app:1")
    await kubectl("-n", "team", "create", "quota", "limits", "--hard=cpu=1,memory=1G")
    found = json.loads((await kubectl("-n", "team", "get", "quota,cm,deploy", "-o", "json")).out)
    items: dict[str, Any] = {item["kind"]: item for item in found["items"]}
    assert items["ConfigMap"]["data"] == {"a": "b"}
    assert items["ResourceQuota"]["spec"]["hard"] == {"cpu": "1", "memory": "1G"}
    template = items["Deployment"]["spec"]["template"]["spec"]
    assert template["containers"][0]["image"] == "example/app:1"


async def test_draining_a_node_evicts_its_pods(kubectl: Kubectl, http: Http) -> None:
    await http.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
    await kubectl("apply", "-f", "-", stdin=POD)
    binding = {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n1"}}
    await http.post("/api/v1/namespaces/default/pods/one/binding", binding)
    await kubectl("cordon", "n1")
    assert "SchedulingDisabled" in (await kubectl("get", "nodes")).out
    drained = asyncio.create_task(
        kubectl("drain", "n1", "--force", "--grace-period=1", "--timeout=300s")
    )
    async with http.watch("/api/v1/namespaces/default/pods") as events:
        async for event in events:
            if "deletionTimestamp" in event["object"]["metadata"]:
                break
    await http.delete("/api/v1/namespaces/default/pods/one", {"gracePeriodSeconds": 0})
    assert "drained" in (await drained).out
