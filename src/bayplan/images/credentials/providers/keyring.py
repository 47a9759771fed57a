"""All plugins of a node together: the credentials that they give a pod for an image.

A plugin that fails, hangs or answers nonsense is reported and passed over, and the pull goes on
with what the others give, as the kubelet does it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bayplan.base.clock import Clock
from bayplan.images.credentials.keyring import Credential, PodKeyring, credentials_for
from bayplan.images.credentials.providers.config import ProviderConfig
from bayplan.images.credentials.providers.plugin import Plugin, ProviderError
from bayplan.images.credentials.providers.provider import (
    Asker,
    PluginMetrics,
    Provider,
    ServiceAccounts,
)
from bayplan.images.registry.credentials import Keyring
from bayplan.kube.imagereferences import parse_image

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Providers:
    """The plugins of a node, in order."""

    providers: Sequence[Provider] = ()

    async def credentials(self, image: str, asker: Asker) -> list[Credential]:
        """What they give for an image, most specific first."""
        keyring: PodKeyring = Keyring()
        name = str(parse_image(image).repository)
        for provider in self.providers:
            keyring += await self._of(provider, name, asker)
        return credentials_for(keyring, image)

    async def _of(self, provider: Provider, name: str, asker: Asker) -> PodKeyring:
        try:
            return await provider.keyring(name, asker)
        except ProviderError as error:
            log.warning("no credentials for %s: %s", name, error)
            if provider.metrics is not None:
                provider.metrics.plugin_failed(provider.settings.name)
            return Keyring()


def providers_of(
    config: ProviderConfig,
    folder: Path,
    clock: Clock,
    accounts: ServiceAccounts | None = None,
    metrics: PluginMetrics | None = None,
) -> Providers:
    """The plugins that a configuration names."""
    return Providers(
        [
            Provider(Plugin(settings, folder), clock, accounts, metrics)
            for settings in config.providers
        ]
    )
