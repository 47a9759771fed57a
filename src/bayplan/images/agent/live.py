"""The image manager's access to a cluster: runtime classes, secrets, pods, node status, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.client.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.events import ApiEventRecorder
from bayplan.client.resources import SERVICE_ACCOUNTS, typed
from bayplan.client.verbs.writes import deletion, merge, token_request
from bayplan.images.credentials.providers.provider import ServiceAccountToken, TokenUnavailableError
from bayplan.images.manager.image_request import (
    ClusterUnavailableError,
    ImageEventReason,
    ImageEventType,
    InvolvedObject,
)
from bayplan.images.runtime.objects import PodIdentity
from bayplan.kube.meta import KubeObject, ObjectMeta, ObjectReference
from bayplan.kube.nodes import ContainerImage, Node
from bayplan.kube.pods import Pod
from bayplan.kube.secrets import Secret, ServiceAccount
from bayplan.kube.times import read_time
from bayplan.kube.workloads import RuntimeClass

SECRETS = typed(Secret)


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """Reads runtime classes (from a cache first), secrets and service accounts."""

    client: Client
    runtime_classes: Mapping[str, RuntimeClass]

    async def runtime_class(self, name: str) -> RuntimeClass | None:
        """Return the runtime class; from the API server only if the cache does not have it."""
        known = self.runtime_classes.get(name)
        if known is not None:
            return known
        try:
            return await self.client.get(RuntimeClass, name)
        except NotFoundError:
            return None
        except ClientError as error:
            raise ClusterUnavailableError(str(error)) from error

    async def secret(self, namespace: str, name: str) -> Secret | None:
        """Return the secret; None if there is none of that name."""
        try:
            return await self.client.get(SECRETS, namespace, name)
        except NotFoundError:
            return None
        except ClientError as error:
            raise ClusterUnavailableError(str(error)) from error

    async def service_account(self, namespace: str, name: str) -> ServiceAccount:
        """Return the service account; TokenUnavailableError if it cannot be read."""
        try:
            return await self.client.get(SERVICE_ACCOUNTS, namespace, name)
        except ClientError as error:
            raise TokenUnavailableError(f"service account {namespace}/{name}: {error}") from None

    async def token(
        self, account: ServiceAccount, audience: str, pod: PodIdentity
    ) -> ServiceAccountToken:
        """Request a token of a service account for an audience, bound to the pod."""
        bound = ObjectReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid)
        request = token_request(audience, account.metadata.uid, bound)
        now = self.client.clock.now()
        try:
            given = await self.client.token(account.namespace, account.name, request)
        except ClientError as error:
            problem = f"no token of service account {account.key}: {error}"
            raise TokenUnavailableError(problem) from None
        ends = read_time(given.expiration_timestamp)
        if not given.token or ends is None:
            raise TokenUnavailableError(f"service account {account.key}: no token in the response")
        return ServiceAccountToken(given.token, (ends - now).total_seconds())


@dataclass(frozen=True, slots=True)
class LiveNodePods:
    """Lists and deletes the pods of a node."""

    client: Client

    async def pods_on(self, node: str) -> list[Pod]:
        """Return the pods that are bound to a node."""
        return list((await self.client.list(Pod, fields=f"spec.nodeName={node}")).items)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete this very pod, not its replacement; no error if it does not exist."""
        try:
            options = deletion(uid=pod.metadata.uid)
            await self.client.delete(Pod, pod.namespace, pod.name, options=options)
        except NotFoundError:
            return


@dataclass(frozen=True, slots=True)
class LiveNodeStatus:
    """Reads and patches `status.images` of a node."""

    client: Client
    node: str

    async def images(self) -> list[ContainerImage]:
        """Return the present list."""
        return (await self.client.get(Node, self.node)).status.images

    async def update(self, images: Sequence[ContainerImage]) -> None:
        """Replace the list, and no other field."""
        change = merge({"status": {"images": list(images)}})
        await self.client.patch(Node, self.node, change=change, subresource="status")


@dataclass(frozen=True, slots=True)
class LiveEvents:
    """Writes events to the API server; never waits and never fails."""

    recorder: ApiEventRecorder

    async def publish(
        self, subject: InvolvedObject, kind: ImageEventType, reason: ImageEventReason, message: str
    ) -> None:
        """Queue an event."""
        meta = ObjectMeta(name=subject.name, namespace=subject.namespace, uid=subject.uid)
        about = KubeObject(api_version="v1", kind=subject.kind, metadata=meta)
        # The action distinguishes two containers' events, which would else be counted as one.
        action = f"EnsureImage/{subject.container}" if subject.container else "CollectImages"
        self.recorder.record(about, kind.value, reason.value, action=action, note=message)
