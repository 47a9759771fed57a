"""The kinds that a cluster has to serve: queues, groups of pods, declared node groups.

They are files of the package, so that an installed `bayplan` has them without the repository.
"""

from __future__ import annotations

from importlib import resources
from typing import cast

import yaml

QUEUEING = ("queues", "podgroups")
"""What queues need."""
ALL = (*QUEUEING, "nodegroups")


def text(name: str) -> str:
    """The file of one of them, as it is written."""
    return resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")


def definition(name: str) -> dict[str, object]:
    """One of them, by its plural name."""
    return cast("dict[str, object]", yaml.load(text(name), yaml.CSafeLoader))
