"""Commands that ask a live cluster: what they read, what they make of what they may not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from bayplan.client import Client, connect
from bayplan.client.resources import untyped
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.observe.permissions import ALL_KINDS, CONSEQUENCES, KINDS_BY_COMMAND, Rule, rules_for
from tests.accounts import restricted, write_token
from tests.cli.clusters import Wire, node, pod

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]
RBAC = "rbac.authorization.k8s.io"
USER = "reader"


def sent(wire: Wire, namespace: str = "") -> Wire:
    """A pod as the API server takes it."""
    wire["spec"]["containers"][0]["image"] = "i"
    if namespace:
        wire["metadata"]["namespace"] = namespace
    return wire


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Client]:
    """A cluster where RBAC decides; its administrator, and in the folder `restricted`, a user."""
    path = tmp_path / "kubeconfig"
    config = ServerConfig(kubeconfig=path, tokens=write_token(tmp_path, USER), authorization="rbac")
    async with ApiServer(config), connect(path) as client:
        restricted(path)
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await client.create(node())
        await client.create(sent(pod("small")))
        await client.create(sent(pod("large", cpu="5"), "shop"))
        yield client


async def grant(admin: Client, rules: list[Rule], namespace: str = "") -> None:
    """Let the user do that, everywhere or in one namespace."""
    what = "Role" if namespace else "ClusterRole"
    for kind in (what, f"{what}Binding"):
        body: dict[str, Any] = {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind,
            "metadata": {"name": "reading", **({"namespace": namespace} if namespace else {})},
        }
        if kind == what:
            body["rules"] = rules
        else:
            body["roleRef"] = {"apiGroup": RBAC, "kind": what, "name": "reading"}
            body["subjects"] = [{"apiGroup": RBAC, "kind": "User", "name": USER}]
        await admin.create(body, untyped(RBAC, "v1", f"{kind.lower()}s", kind))


async def asked(tmp_path: Path, *words: str, who: str = "restricted") -> int:
    return await asyncio.to_thread(run, [*words, "--kubeconfig", str(tmp_path / who)])


async def test_a_pod_of_the_current_context_is_explained(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    for words in (["small"], ["pod/small"], ["default/small"], ["small", "-n", "default"]):
        assert await asked(tmp_path, "explain", *words, who="kubeconfig") == 0
        assert "default/small" in capsys.readouterr().out
    assert await asked(tmp_path, "explain", "large", "-n", "shop", who="kubeconfig") == 1
    assert await asked(tmp_path, "explain", "small", "-n", "shop", who="kubeconfig") == 2
    said = capsys.readouterr().err
    assert "pod shop/small not found in the cluster; did you mean default/small?" in said


async def test_a_namespace_picks_whose_pods_are_told_and_others_keep_their_places(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    everybody = ["explain", "--all-pending", "-o", "json"]
    told = {}
    for words in ((), ("-A",), ("-n", "shop"), ("-n", "shop", "-A"), ("-n", "default")):
        await asked(tmp_path, *everybody, *words, who="kubeconfig")
        found = json.loads(capsys.readouterr().out)["explanations"]
        told[words] = sorted(name for one in found for name in one["pods"])
    assert told[()] == told[("-A",)] == told[("-n", "shop", "-A")]
    assert told[()] == ["default/small", "shop/large"]
    assert told[("-n", "shop")] == ["shop/large"]
    assert told[("-n", "default")] == ["default/small"]
    await cluster.create(sent(pod("also", cpu="3.5"), "shop"))  # takes the place that is left
    assert await asked(tmp_path, *everybody, "-n", "shop", who="kubeconfig") == 1
    found = json.loads(capsys.readouterr().out)["explanations"]
    assert {one["pod"]: one["fits"] for one in found}["shop/also"] is False


async def test_the_rules_of_the_table_are_all_that_the_commands_need(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    await grant(cluster, rules_for())
    assert await asked(tmp_path, "explain", "--all-pending", "-o", "json") == 1
    assert json.loads(capsys.readouterr().out)["incomplete"] == []
    assert await asked(tmp_path, "volumes") == 0
    assert await asked(tmp_path, "plan") == 4
    assert "note:" not in capsys.readouterr().out
    assert all(rule["verbs"] == ["list"] for rule in rules_for())


async def test_a_missing_permission_is_named_with_what_follows_from_it(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    kinds = [kind for kind in ALL_KINDS.kinds if kind.__name__ != "PersistentVolume"]
    await grant(cluster, rules_for(kinds))
    assert await asked(tmp_path, "explain", "small") == 0
    said = capsys.readouterr().out
    assert (
        'note: persistentvolumes could not be read (User "reader" cannot list resource'
        ' "persistentvolumes" in API group "" at the cluster scope): bound claims count as if'
        " their volume did not exist"
    ) in said
    for words in (["explain", "small"], ["plan"], ["volumes"]):
        await asked(tmp_path, *words, "-o", "json")
        (found,) = json.loads(capsys.readouterr().out)["incomplete"]
        assert found["kind"] == "PersistentVolume"


@pytest.mark.parametrize("vital", ["Pod", "Node"])
@pytest.mark.parametrize("words", [("explain", "--all-pending"), ("volumes",), ("plan",)])
async def test_without_pods_or_nodes_there_is_no_answer(
    cluster: Client, vital: str, words: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    kinds = [kind for kind in ALL_KINDS.kinds if kind.__name__ != vital]
    await grant(cluster, rules_for(kinds))
    assert await asked(tmp_path, *words) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {vital.lower()}s could not be read (User ")
    assert "docs/live.md" in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert ("-n NAMESPACE" in said.err) == (vital == "Pod")


async def test_with_a_role_in_one_namespace_its_pods_are_judged_by_what_is_seen(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    namespaced = [kind for kind in ALL_KINDS.kinds if kind.__name__ != "Node"]
    await grant(cluster, rules_for([kind for kind in ALL_KINDS.kinds if kind.__name__ == "Node"]))
    await grant(cluster, rules_for(namespaced), "shop")
    assert await asked(tmp_path, "explain", "large", "-n", "shop", "-o", "json") == 1
    found = json.loads(capsys.readouterr().out)["incomplete"]
    said = {one["kind"]: one["note"] for one in found}
    assert "pods could be read only in namespace shop" in said["Pod"]
    assert "in others, running and pending pods are unknown" in said["Pod"]
    assert said["CSINode"].startswith("csinodes.storage.k8s.io could not be read")
    assert await asked(tmp_path, "explain", "shop/large") == 1
    assert "note: pods could be read only in namespace shop" in capsys.readouterr().out
    assert await asked(tmp_path, "explain", "--all-pending") == 2
    assert "-n NAMESPACE reads one namespace" in capsys.readouterr().err


async def test_a_dump_and_a_cluster_are_not_both_asked(tmp_path: Path, capsys: Captured) -> None:
    for command in (["explain", "p"], ["volumes"], ["plan"], ["queues"]):
        for option in (["--context", "c"], ["--kubeconfig", "k"]):
            assert run([*command, "-f", "cluster.json", *option]) == 2
            assert "not both" in capsys.readouterr().err


def test_every_kind_that_is_read_has_its_consequence() -> None:
    assert set(ALL_KINDS.kinds) == set(CONSEQUENCES)
    assert all(set(needs.kinds) <= set(ALL_KINDS.kinds) for needs in KINDS_BY_COMMAND.values())
    assert all(needs.vital <= set(needs.kinds) for needs in KINDS_BY_COMMAND.values())
