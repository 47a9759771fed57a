"""A pod's credentials for one image, read at most once and only if they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bayplan.images.credentials.keyring import (
    Credential,
    PodKeyring,
    credentials_for,
    keyring_of_secret,
)
from bayplan.images.credentials.providers.keyring import Providers
from bayplan.images.credentials.providers.provider import Asker
from bayplan.images.manager.cluster import (
    Cluster,
    ClusterUnavailableError,
    EventKind,
    EventReason,
    EventSink,
    Subject,
)
from bayplan.images.manager.wanted import WantedImage
from bayplan.kube.secrets import Secret


@dataclass(slots=True)
class PodCredentials:
    """What the pod's pull secrets, then the node's own, then its plugins offer for an image."""

    wanted: WantedImage
    cluster: Cluster
    events: EventSink
    node_keyring: PodKeyring
    providers: Providers
    _found: Sequence[Credential] | None = field(default=None, repr=False)

    async def get(self) -> Sequence[Credential]:
        """The credentials to try, in turn."""
        if self._found is None:
            image, pod = self.wanted.spec.image, self.wanted.pod
            asker = Asker(self.wanted.pod_identity, pod.spec.service_account_name)
            given = [
                *credentials_for(await self._pod_keyring(), image),
                *credentials_for(self.node_keyring, image),
                *await self.providers.credentials(image, asker),
            ]
            self._found = list(dict.fromkeys(given))
        return self._found

    async def _pod_keyring(self) -> PodKeyring:
        """A secret that is missing or unreadable is told of, and the others are used."""
        keyring, problems = PodKeyring(), []
        for reference in self.wanted.pod.spec.image_pull_secrets:
            try:
                keyring += keyring_of_secret(await self._secret(reference.name))
            except (_NoSecretError, ValueError) as error:
                problems.append(str(error))
        if problems:
            await self._tell(problems)
        return keyring

    async def _secret(self, name: str) -> Secret:
        try:
            secret = await self.cluster.secret(self.wanted.pod.namespace, name)
        except ClusterUnavailableError as error:
            raise _NoSecretError(f"{name} ({error})") from error
        if secret is None:
            raise _NoSecretError(f"{name} (not found)")
        return secret

    async def _tell(self, problems: list[str]) -> None:
        message = f"Some image pull secrets cannot be used: {', '.join(problems)}"
        subject = Subject.of_container(self.wanted.pod, self.wanted.container)
        await self.events.publish(subject, EventKind.WARNING, EventReason.NO_PULL_SECRET, message)


class _NoSecretError(Exception):
    """A pull secret cannot be had."""
