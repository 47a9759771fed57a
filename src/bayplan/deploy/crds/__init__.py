"""The custom resource definitions: Queue, PodGroup and NodeGroup.

They are files of the package, so that an installed `bayplan` has them without the repository.
"""

from __future__ import annotations

from importlib import resources
from typing import cast

import yaml

QUEUEING = ("queues", "podgroups")
"""The definitions that queues need."""
ALL = (*QUEUEING, "nodegroups")


def text(name: str) -> str:
    """Return the YAML text of a definition, by its plural name."""
    return resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")


def definition(name: str) -> dict[str, object]:
    """Return a definition, by its plural name."""
    return cast("dict[str, object]", yaml.load(text(name), yaml.CSafeLoader))
