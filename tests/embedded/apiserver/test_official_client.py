"""The official Python client lists, watches and patches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch

from bayplan.embedded.apiserver.server import ApiServer

pytestmark = pytest.mark.whole


@pytest.fixture
def api(server: ApiServer, tmp_path: Path) -> Any:
    """The official client, with the kubeconfig that the server writes."""
    path = tmp_path / "kubeconfig"
    path.write_text(server.kubeconfig)
    made = config.new_client_from_config(str(path))  # type: ignore[no-untyped-call]
    yield made
    made.close()


def pod(name: str) -> client.V1Pod:
    container = client.V1Container(name="main", image="example/app:1")
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}),
        spec=client.V1PodSpec(containers=[container]),
    )


async def test_objects_are_made_listed_patched_and_deleted(api: Any) -> None:
    core: Any = client.CoreV1Api(api)

    def drive() -> tuple[list[str], dict[str, str], str]:
        core.create_namespaced_pod("default", pod("a"))
        core.create_namespaced_pod("default", pod("b"))
        listed = core.list_namespaced_pod("default", label_selector="app in (a, b)")
        names = [item.metadata.name for item in listed.items]
        labels = {"metadata": {"labels": {"tier": "x"}}}
        patched = core.patch_namespaced_pod("a", "default", labels)
        core.delete_namespaced_pod("b", "default")
        return names, patched.metadata.labels, patched.status.phase

    names, labels, phase = await asyncio.to_thread(drive)
    assert (names, labels, phase) == (["a", "b"], {"app": "a", "tier": "x"}, "Pending")


async def test_a_watch_sees_what_others_do(api: Any) -> None:
    core: Any = client.CoreV1Api(api)

    def follow(version: str) -> list[tuple[str, str]]:
        seen = []
        stream: Any = watch.Watch()  # type: ignore[no-untyped-call]
        pods = stream.stream(
            core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=300
        )
        for event in pods:
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 3:
                stream.stop()
        return seen

    def change() -> None:
        core.create_namespaced_pod("default", pod("a"))
        core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "y"}}})
        core.delete_namespaced_pod("a", "default")

    listed = await asyncio.to_thread(core.list_namespaced_pod, "default")
    assert listed.items == []
    # From the list's version on, so that no change is missed whenever the watch reaches the server.
    following = asyncio.create_task(asyncio.to_thread(follow, listed.metadata.resource_version))
    await asyncio.to_thread(change)
    assert await following == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_scale_binding_and_status_go_through_their_subresources(api: Any) -> None:
    core: Any = client.CoreV1Api(api)
    apps: Any = client.AppsV1Api(api)

    def drive() -> tuple[int, str, str]:
        labels = {"app": "web"}
        template = client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels=labels), spec=pod("x").spec
        )
        spec = client.V1DeploymentSpec(
            selector=client.V1LabelSelector(match_labels=labels), template=template, replicas=1
        )
        body = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
        apps.create_namespaced_deployment("default", body)
        scale = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 4}})
        core.create_namespaced_pod("default", pod("a"))
        target = client.V1ObjectReference(kind="Node", name="n1")
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name="a"), target=target)
        core.create_namespaced_pod_binding("a", "default", binding, _preload_content=False)
        status = {"status": {"phase": "Running"}}
        bound = core.patch_namespaced_pod_status("a", "default", status)
        return scale.spec.replicas, bound.spec.node_name, bound.status.phase

    assert await asyncio.to_thread(drive) == (4, "n1", "Running")


async def test_pages_are_followed(api: Any) -> None:
    core: Any = client.CoreV1Api(api)

    def drive() -> list[str]:
        for number in range(7):
            core.create_namespaced_config_map(
                "default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"c{number}"))
            )
        names: list[str] = []
        token = None
        while token != "":
            page = core.list_namespaced_config_map("default", limit=3, _continue=token)
            names += [item.metadata.name for item in page.items]
            token = page.metadata._continue or ""
        return names

    assert await asyncio.to_thread(drive) == [f"c{number}" for number in range(7)]
