"""What is in a fake project of Compute Engine: groups, instances, templates, machine types."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

PROJECT = "shop-prod"
REGION = "europe-west1"
ZONES = tuple(f"{REGION}-{letter}" for letter in "bcd")
ZONE = ZONES[0]
API = "https://www.googleapis.com/compute/v1"
LEAVING = {"DELETING", "ABANDONING"}
MACHINE_TYPES: dict[str, dict[str, Any]] = {
    "e2-standard-4": {"guestCpus": 4, "memoryMb": 16384, "architecture": "X86_64"},
    "e2-medium": {"guestCpus": 2, "memoryMb": 4096, "isSharedCpu": True},
    "n4-standard-8": {"guestCpus": 8, "memoryMb": 32768, "architecture": "X86_64"},
    "c4-standard-2": {"guestCpus": 2, "memoryMb": 7168, "architecture": "X86_64"},
    "t2a-standard-4": {"guestCpus": 4, "memoryMb": 16384, "architecture": "ARM64"},
    "a2-highgpu-1g": {
        "guestCpus": 12,
        "memoryMb": 87040,
        "accelerators": [{"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": 1}],
    },
}


@dataclass
class FakeInstance:
    """An instance of a group."""

    name: str
    zone: str
    action: str = "CREATING"
    errors: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{API}/projects/{PROJECT}/zones/{self.zone}/instances/{self.name}"

    @property
    def provider_id(self) -> str:
        return f"gce://{PROJECT}/{self.zone}/{self.name}"

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "instance": self.url,
            "id": "7",
            "name": self.name,
            "currentAction": self.action,
        }
        found |= {} if self.action == "CREATING" else {"instanceStatus": "RUNNING"}
        return found | ({"lastAttempt": {"errors": {"errors": self.errors}}} if self.errors else {})


@dataclass
class FakeMig:
    """A managed instance group."""

    name: str
    scope: str
    location: str
    template: str
    size: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    instances: list[FakeInstance] = field(default_factory=list)
    largest: int = 0
    """The largest size that it ever had."""
    _numbers: Any = field(default_factory=lambda: count(1))

    @property
    def path(self) -> str:
        return f"projects/{PROJECT}/{self.scope}/{self.location}"

    @property
    def id(self) -> str:
        return f"{API}/{self.path}/instanceGroups/{self.name}"

    @property
    def zones(self) -> tuple[str, ...]:
        return ZONES if self.scope == "regions" else (self.location,)

    def active(self) -> list[FakeInstance]:
        return [one for one in self.instances if one.action not in LEAVING]

    def shown(self) -> dict[str, Any]:
        place = {"zone" if self.scope == "zones" else "region": f"{API}/{self.path}"}
        policy = [{"zone": f"{API}/projects/{PROJECT}/zones/{one}"} for one in self.zones]
        spread = {"distributionPolicy": {"zones": policy}} if self.scope == "regions" else {}
        return {
            "name": self.name,
            "id": "9",
            "kind": "compute#instanceGroupManager",
            "targetSize": self.size,
            "instanceTemplate": self.template,
            "versions": [{"instanceTemplate": self.template}],
            "instanceGroup": self.id,
            **place,
            **spread,
            **self.extra,
        }

    def resize(self, size: int, errors: list[dict[str, str]]) -> None:
        """Create what is missing, or delete what is too much: Compute Engine chooses which."""
        self.size, self.largest = size, max(self.largest, size)
        while len(self.active()) < size:
            number = next(self._numbers)
            zone = self.zones[number % len(self.zones)]
            name = f"{self.name}-{number:04d}"
            self.instances.append(FakeInstance(name, zone, errors=list(errors)))
        for one in self.active()[size:]:
            one.action = "DELETING"

    def delete(self, urls: set[str]) -> None:
        for one in self.active():
            if one.url in urls:
                one.action = "DELETING"
                self.size -= 1

    def settle(self) -> None:
        """Let what can be created run, and what is deleted be gone."""
        self.instances = [one for one in self.instances if one.action not in LEAVING]
        for one in self.instances:
            one.action = one.action if one.errors else "NONE"


@dataclass
class FakeProject:
    """A project: groups by name, and what their nodes are made of."""

    groups: dict[str, FakeMig] = field(default_factory=dict)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    types: dict[str, dict[str, Any]] = field(default_factory=lambda: dict(MACHINE_TYPES))
    errors: list[dict[str, str]] = field(default_factory=list)
    """With which instances are not created."""

    def template(
        self,
        name: str = "launch",
        machine_type: str = "e2-standard-4",
        env: str = "",
        *,
        metadata: dict[str, str] | None = None,
        region: str = "",
        **properties: Any,
    ) -> str:
        """Add an instance template whose item `autoscaler-env-vars` is `env`; return its URL."""
        items = {**({"autoscaler-env-vars": env} if env else {}), **(metadata or {})}
        place = f"regions/{region}" if region else "global"
        url = f"{API}/projects/{PROJECT}/{place}/instanceTemplates/{name}"
        self.templates[url] = {
            "name": name,
            "id": "8",
            "properties": {
                "machineType": machine_type,
                "metadata": {"items": [{"key": k, "value": v} for k, v in items.items()]},
                "disks": [{"boot": True, "initializeParams": {"diskSizeGb": "100"}}],
                **properties,
            },
        }
        return url

    def group(
        self,
        name: str = "workers",
        size: int = 0,
        *,
        location: str = ZONE,
        template: str = "",
        **extra: Any,
    ) -> FakeMig:
        """Add a group whose instances run; one in a region if the location is one."""
        scope = "regions" if location == REGION else "zones"
        url = template or self.template()
        made = FakeMig(name, scope, location, url, extra=extra)
        made.resize(size, [])
        made.settle()
        self.groups[f"{location}/{name}"] = made
        return made

    def settle(self) -> None:
        for one in self.groups.values():
            one.settle()

    def find(self, scope: str, location: str, name: str) -> FakeMig | None:
        found = self.groups.get(f"{location}/{name}")
        return found if found is not None and found.scope == scope else None
