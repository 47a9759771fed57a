"""Names of managed instance groups, instances and other resources, as Compute Engine writes them.

A node group's id is the URL of its instance group, as in Cluster Autoscaler:
`https://www.googleapis.com/compute/v1/projects/P/zones/Z/instanceGroups/NAME`. A node's provider ID
is `gce://PROJECT/ZONE/INSTANCE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

Scope = Literal["zones", "regions"]
_API = "https://www.googleapis.com/compute/v1"
_PROJECT = r"(?:[a-z0-9.-]{1,100}:)?[a-z0-9-]{1,63}"
_WORD = r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
_MIG = re.compile(
    rf"(?:https://[a-z0-9.-]+/(?:compute/[a-z0-9_]+/)?)?projects/({_PROJECT})/(zones|regions)/"
    rf"({_WORD})/(?:instanceGroups|instanceGroupManagers)/({_WORD})"
)
_INSTANCE = re.compile(
    rf"(?:.{{0,200}}/)?projects/({_PROJECT})/zones/({_WORD})/instances/({_WORD})"
)
_PROVIDER_ID = re.compile(rf"gce://({_PROJECT})/({_WORD})/({_WORD})")
_TEMPLATE = re.compile(
    rf"(?:.{{0,200}}/)?projects/({_PROJECT})/(global|regions/{_WORD})/instanceTemplates/({_WORD})"
)
_NAME = re.compile(_WORD)


@dataclass(frozen=True, slots=True, order=True)
class MigRef:
    """A managed instance group: its project, its zone or region, and its name."""

    project: str
    scope: Scope
    location: str
    name: str

    @property
    def id(self) -> str:
        """The node group's id."""
        path = f"projects/{self.project}/{self.scope}/{self.location}"
        return f"{_API}/{path}/instanceGroups/{self.name}"

    @property
    def region(self) -> str:
        """The region of the group."""
        return self.location if self.scope == "regions" else region_of(self.location)


@dataclass(frozen=True, slots=True, order=True)
class InstanceRef:
    """An instance: its project, zone and name."""

    project: str
    zone: str
    name: str

    @property
    def provider_id(self) -> str:
        """The provider ID of the instance's node."""
        return f"gce://{self.project}/{self.zone}/{self.name}"

    @property
    def url(self) -> str:
        """The instance's URL."""
        return f"{_API}/projects/{self.project}/zones/{self.zone}/instances/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class InstanceTemplateRef:
    """An instance template: its project, its region if it is regional, and its name."""

    project: str
    region: str
    name: str


def region_of(zone: str) -> str:
    """Return the region of a zone."""
    return zone.rpartition("-")[0]


def is_name(text: str) -> bool:
    """Whether a text can be the name of a group."""
    return _NAME.fullmatch(text) is not None


def mig_ref(text: str) -> MigRef | None:
    """Parse the URL of a group, or the end of one from `projects/` on; None if it is not one."""
    found = _MIG.fullmatch(text)
    if found is None:
        return None
    project, scope, location, name = found.groups()
    return MigRef(project, cast("Scope", scope), location, name)


def instance_ref(url: str) -> InstanceRef | None:
    """Parse the URL of an instance; None if it is not one."""
    found = _INSTANCE.fullmatch(url)
    return InstanceRef(*found.groups()) if found else None


def node_instance(provider_id: str) -> InstanceRef | None:
    """Return the instance in a provider ID; None if it is not Compute Engine's."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    return InstanceRef(*found.groups()) if found else None


def template_ref(url: str) -> InstanceTemplateRef | None:
    """Parse the URL of an instance template; None if it is not one."""
    found = _TEMPLATE.fullmatch(url)
    if found is None:
        return None
    project, where, name = found.groups()
    region = "" if where == "global" else where.removeprefix("regions/")
    return InstanceTemplateRef(project, region, name)


def last_part(url: str) -> str:
    """Return a URL's last part, such as the name of a zone."""
    return url.rpartition("/")[2]
