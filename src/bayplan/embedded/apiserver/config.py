"""How a server is to be: where it listens, where it keeps its data, whom it lets do what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Literal

from bayplan.base.clock import Clock, WallClock
from bayplan.embedded.apiserver.admission.webhooks.dispatch import HttpsPoster, Poster
from bayplan.embedded.apiserver.authorization.rbac import Attributes, Decision
from bayplan.embedded.apiserver.store.database import Durability
from bayplan.embedded.apiserver.store.store import WATCH_CACHE_CAPACITY, Store


@dataclass(slots=True)
class PlaneConfig:
    """Everything that can be chosen about a control plane."""

    data: Path | None = None
    """The data file; None keeps everything in memory."""
    tokens: Path | None = None
    authorization: Literal["rbac", "always-allow"] = "always-allow"
    audit: Callable[[Attributes, Decision], None] | None = None
    """Who is told of every decision on who may do what."""
    allow_privileged: bool = False
    """Whether containers may be privileged."""
    controllers: Literal["all", "own"] = "all"
    """Whether garbage is collected and namespaces are emptied here, too, or only done what
    kube-apiserver does itself, and the rest is left to a kube-controller-manager.
    """
    durability: Durability = "process"
    clock: Clock = field(default_factory=WallClock)
    rng: Random = field(default_factory=SystemRandom)
    watch_cache_capacity: int = WATCH_CACHE_CAPACITY
    """Changes per resource from which watches can resume."""
    webhooks: Callable[[Store], Poster] = HttpsPoster
    """What takes reviews to webhooks."""


@dataclass(slots=True)
class ServerConfig(PlaneConfig):
    """Everything that can be chosen about a server."""

    host: str = "127.0.0.1"
    port: int = 0
    kubeconfig: Path | None = None
    """Where to write the administrator's kubeconfig."""
    grace_seconds: int = 2
    """How long a stopping server waits for its clients."""
