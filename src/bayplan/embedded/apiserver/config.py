"""Configuration of a server: listen address, data file, authorization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Literal

from bayplan.base.clock import Clock, WallClock
from bayplan.embedded.apiserver.admission.webhooks.dispatch import (
    HttpsWebhookTransport,
    WebhookTransport,
)
from bayplan.embedded.apiserver.authorization.rbac import Attributes, AuthorizationDecision
from bayplan.embedded.apiserver.store.database import Durability
from bayplan.embedded.apiserver.store.store import WATCH_CACHE_CAPACITY, ApiObjectStore


@dataclass(slots=True)
class PlaneConfig:
    """Configuration of a control plane."""

    data: Path | None = None
    """The data file; None keeps everything in memory."""
    tokens: Path | None = None
    authorization: Literal["rbac", "always-allow"] = "always-allow"
    audit: Callable[[Attributes, AuthorizationDecision], None] | None = None
    """Called with every authorization decision."""
    allow_privileged: bool = False
    """Whether containers may be privileged."""
    controllers: Literal["all", "own"] = "all"
    """Whether garbage collection and namespace deletion run here (`all`), or only what
    kube-apiserver does itself (`own`), the rest being left to a kube-controller-manager.
    """
    durability: Durability = "process"
    clock: Clock = field(default_factory=WallClock)
    rng: Random = field(default_factory=SystemRandom)
    watch_cache_capacity: int = WATCH_CACHE_CAPACITY
    """Number of changes per resource from which watches can resume."""
    webhooks: Callable[[ApiObjectStore], WebhookTransport] = HttpsWebhookTransport
    """Returns the transport for admission reviews."""


@dataclass(slots=True)
class ServerConfig(PlaneConfig):
    """Configuration of a server."""

    host: str = "127.0.0.1"
    port: int = 0
    kubeconfig: Path | None = None
    """Path at which to write the administrator's kubeconfig."""
    grace_seconds: int = 2
    """How long a stopping server waits for its clients."""
