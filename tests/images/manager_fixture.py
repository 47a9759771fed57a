"""An image manager with a runtime, a cluster in memory, and a clock that is moved by hand."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from bayplan.base.flowcontrol import TokenBucket
from bayplan.images.credentials.pull_manager import CredentialVerification, ImagePullManager
from bayplan.images.credentials.records import PullRecordFiles
from bayplan.images.manager.image_request import (
    ClusterUnavailableError,
    ImageEventReason,
    ImageEventType,
    InvolvedObject,
)
from bayplan.images.manager.manager import ImageManager, ImageReady, ImageWaiting
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.manager.pulls import ImagePuller, KeyedBackoff, PullSlots
from bayplan.images.runtime.objects import ImageRuntime, with_gate
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.pods import LocalObjectReference, Pod
from bayplan.kube.secrets import DOCKER_CONFIG_JSON_TYPE, Secret
from bayplan.kube.workloads import RuntimeClass
from tests.builders import make_pod
from tests.clocks import VirtualClock


@dataclass
class FakeCluster:
    """A cluster in memory: its runtime classes, its secrets, and its events."""

    handlers: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    away: bool = False

    async def runtime_class(self, name: str) -> RuntimeClass | None:
        self.asked.append(name)
        if self.away:
            raise ClusterUnavailableError("connection refused")
        if name not in self.handlers:
            return None
        return RuntimeClass(metadata=ObjectMeta(name=name), handler=self.handlers[name])

    async def secret(self, namespace: str, name: str) -> Secret | None:
        return self.secrets.get(f"{namespace}/{name}")

    async def publish(
        self, subject: InvolvedObject, kind: ImageEventType, reason: ImageEventReason, message: str
    ) -> None:
        self.events.append((f"{subject.namespace}/{subject.name}", reason.value, message))

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]

    def add_secret(self, name: str, host: str, user: str, password: str) -> None:
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
        content = json.dumps({"auths": {host: {"auth": auth}}}).encode()
        meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
        self.secrets[f"default/{name}"] = Secret(
            metadata=meta, type=DOCKER_CONFIG_JSON_TYPE, data={".dockerconfigjson": content}
        )


@dataclass
class ManagerFixture:
    """Everything around one image manager."""

    runtime: ImageRuntime
    folder: Path
    cluster: FakeCluster = field(default_factory=FakeCluster)
    clock: VirtualClock = field(default_factory=VirtualClock)
    verification: CredentialVerification = field(default_factory=CredentialVerification)
    bucket: TokenBucket = field(default_factory=lambda: TokenBucket(qps=0, burst=0))
    line: PullSlots = field(default_factory=PullSlots)
    gate: bool = True
    registry: CollectorRegistry = field(init=False)
    manager: ImageManager = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new manager, as after a restart of the agent: only what is on disk is left."""
        self.registry = CollectorRegistry()
        runtime = with_gate(self.runtime, enabled=self.gate)
        self.manager = ImageManager(
            runtime=runtime,
            cluster=self.cluster,
            events=self.cluster,
            pull_manager=ImagePullManager(
                PullRecordFiles(self.folder), self.verification, self.clock
            ),
            puller=ImagePuller(runtime, self.clock, self.line, self.bucket),
            backoff=KeyedBackoff(),
            metrics=ImageMetrics(self.registry),
            clock=self.clock,
            use_handlers=self.gate,
        )

    async def ensure(self, pod: Pod) -> ImageReady | ImageWaiting:
        return await self.manager.ensure_image_exists(pod, pod.spec.containers[0])

    async def ready(self, pod: Pod) -> ImageReady:
        outcome = await self.ensure(pod)
        assert isinstance(outcome, ImageReady), outcome
        return outcome

    async def waiting(self, pod: Pod) -> ImageWaiting:
        outcome = await self.ensure(pod)
        assert isinstance(outcome, ImageWaiting), outcome
        return outcome

    def metrics(self) -> str:
        return generate_latest(self.registry).decode()


def pod_of(
    image: str,
    name: str = "web",
    *,
    policy: str = "",
    runtime_class: str | None = None,
    secrets: tuple[str, ...] = (),
) -> Pod:
    pod = make_pod(name).uid(f"uid-{name}").image(image).obj()
    pod.spec.containers[0].image_pull_policy = policy
    pod.spec.runtime_class_name = runtime_class
    pod.spec.image_pull_secrets = [LocalObjectReference(name=secret) for secret in secrets]
    return pod
