"""Provider IDs as they are compared, and those of machines that have none yet.

Clouds write the ID of one machine in several ways, and what comes after the last slash is the same
in all of them; but for Azure's scale sets, where it only counts. A machine that has no ID yet is
called by a name that its namespace and name can be read from.
"""

from __future__ import annotations

PENDING, FAILED, DELETING = "pending-machine-", "failed-machine-", "deleting-machine-"
_MADE_UP = (PENDING, FAILED, DELETING)


def normalized(provider_id: str) -> str:
    """What two IDs of one machine have in common."""
    if provider_id.startswith("azure://") and "virtualMachineScaleSets" in provider_id:
        return provider_id
    return provider_id.rpartition("/")[2]


def made_up(prefix: str, namespace: str, name: str) -> str:
    """The ID of a machine that has none; no namespace has an underscore in it."""
    return f"{prefix}{namespace}_{name}"


def machine_key(provider_id: str) -> str:
    """The machine that a made-up ID stands for, as `namespace/name`; empty if it is a real one."""
    for prefix in _MADE_UP:
        if provider_id.startswith(prefix):
            return provider_id.removeprefix(prefix).replace("_", "/", 1)
    return ""
