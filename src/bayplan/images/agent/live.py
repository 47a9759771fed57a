"""A live cluster behind the image manager's few questions: any API server, through our client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.client.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.events import Recorder
from bayplan.client.resources import SERVICE_ACCOUNTS, typed
from bayplan.client.verbs.writes import deletion, merge, token_request
from bayplan.images.credentials.providers.provider import Token, TokenUnavailableError
from bayplan.images.manager.wanted import ClusterUnavailableError, EventKind, EventReason, Subject
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
    """Runtime classes, secrets and pods; a copy of the runtime classes saves most questions."""

    client: Client
    runtime_classes: Mapping[str, RuntimeClass]

    async def runtime_class(self, name: str) -> RuntimeClass | None:
        """The runtime class; the server is asked only if our copy does not know it."""
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
        """The secret, or None if there is none of that name."""
        try:
            return await self.client.get(SECRETS, namespace, name)
        except NotFoundError:
            return None
        except ClientError as error:
            raise ClusterUnavailableError(str(error)) from error

    async def service_account(self, namespace: str, name: str) -> ServiceAccount:
        """The service account; TokenUnavailableError if it cannot be had."""
        try:
            return await self.client.get(SERVICE_ACCOUNTS, namespace, name)
        except ClientError as error:
            raise TokenUnavailableError(f"service account {namespace}/{name}: {error}") from None

    async def token(self, account: ServiceAccount, audience: str, pod: PodIdentity) -> Token:
        """A token of a service account for an audience, good as long as the pod exists."""
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
            raise TokenUnavailableError(f"no token of service account {account.key} was given")
        return Token(given.token, (ends - now).total_seconds())


@dataclass(frozen=True, slots=True)
class LiveWorkloads:
    """The pods of a node, to be restarted."""

    client: Client

    async def pods_on(self, node: str) -> list[Pod]:
        """The pods that are bound to a node."""
        return list((await self.client.list(Pod, fields=f"spec.nodeName={node}")).items)

    async def delete_pod(self, pod: Pod) -> None:
        """Have this very pod deleted, not one that came in its place; fine if it is gone."""
        try:
            options = deletion(uid=pod.metadata.uid)
            await self.client.delete(Pod, pod.namespace, pod.name, options=options)
        except NotFoundError:
            return


@dataclass(frozen=True, slots=True)
class LiveNodeStatus:
    """A node's list of images on the API server."""

    client: Client
    node: str

    async def images(self) -> list[ContainerImage]:
        """What it says now."""
        return (await self.client.get(Node, self.node)).status.images

    async def tell(self, images: Sequence[ContainerImage]) -> None:
        """Replace the list, and touch nothing else."""
        change = merge({"status": {"images": list(images)}})
        await self.client.patch(Node, self.node, change=change, subresource="status")


@dataclass(frozen=True, slots=True)
class LiveEvents:
    """Events on the API server; never waits and never fails."""

    recorder: Recorder

    async def publish(
        self, subject: Subject, kind: EventKind, reason: EventReason, message: str
    ) -> None:
        """Note an event, to be sent in the background."""
        meta = ObjectMeta(name=subject.name, namespace=subject.namespace, uid=subject.uid)
        about = KubeObject(api_version="v1", kind=subject.kind, metadata=meta)
        # The action keeps two containers' events apart, which would else be counted as one.
        action = f"EnsureImage/{subject.container}" if subject.container else "CollectImages"
        self.recorder.note(about, kind.value, reason.value, action=action, text=message)
