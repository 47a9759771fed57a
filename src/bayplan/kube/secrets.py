"""Secrets and service accounts, as far as image pulls read them. A repr shows no secret data."""

from __future__ import annotations

from bayplan.kube.meta import KubeObject

DOCKER_CONFIG_JSON_TYPE = "kubernetes.io/dockerconfigjson"
DOCKER_CONFIG_TYPE = "kubernetes.io/dockercfg"


class Secret(KubeObject):
    """A secret; `data` is base64 on the wire and bytes here."""

    type: str = "Opaque"
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Secret({self.key!r}, type={self.type!r}, keys={sorted(self.data)})"


class ServiceAccount(KubeObject):
    """A service account."""
