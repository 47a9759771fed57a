"""The credential providers that older kubeconfigs name (`auth-provider: oidc`, `gcp`).

Their refresh dances are kubernetes_asyncio's to know; it is imported only when a kubeconfig names
one. Refreshed tokens are used, not written back: the kubeconfig is its owner's file.
"""

from __future__ import annotations

import asyncio

from bayplan.client.config.credentials import Anonymous, checked_token
from bayplan.client.config.kubeconfig_types import AuthProvider
from bayplan.client.errors import ConfigError

KNOWN = ("gcp", "oidc")


class ProvidedToken(Anonymous):
    """A token that kubernetes_asyncio gets and refreshes."""

    def __init__(self, provider: AuthProvider) -> None:
        if provider.name not in KNOWN:
            raise ConfigError(f"auth-provider {provider.name!r} is not one of {', '.join(KNOWN)}")
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

        self._name = provider.name
        self._loader = KubeConfigLoader(_as_kubeconfig(provider))
        self._asking = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The token, refreshed if the library finds that it has run out."""
        async with self._asking:
            try:
                if self._name == "gcp":
                    header = await self._loader.load_gcp_token()
                else:
                    header = await self._loader._load_oid_token()  # noqa: SLF001
            except Exception:  # noqa: BLE001 # whatever it raises may quote the token
                raise ConfigError(f"auth-provider {self._name}: no valid token") from None
        token = str(header).removeprefix("Bearer ")
        return f"Bearer {checked_token(token, f'the token of auth-provider {self._name}')}"


def _as_kubeconfig(provider: AuthProvider) -> dict[str, object]:
    settings = {"name": provider.name, "config": dict(provider.config or {})}
    return {
        "current-context": "only",
        "contexts": [{"name": "only", "context": {"cluster": "only", "user": "only"}}],
        "clusters": [{"name": "only", "cluster": {"server": "https://only.invalid"}}],
        "users": [{"name": "only", "user": {"auth-provider": settings}}],
    }
