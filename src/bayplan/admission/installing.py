"""Keeping the webhook's configurations in the cluster.

One that is not there is made whole. In one that is there, only what is ours to keep up is changed:
the authorities that API servers are to trust, and the failure policy if somebody asked for one.
Where cert-manager puts its own authority in, that is left alone. An API server that knows no match
conditions gets a configuration without: then it asks about every pod.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from bayplan.admission.configurations import (
    CONDITIONS,
    MUTATING,
    VALIDATING,
    Registration,
    mutating,
    unconditional,
    validating,
)
from bayplan.admission.review import PatchOperation
from bayplan.client import Client, Resource, Untyped, json_patch
from bayplan.client.errors import AlreadyExistsError, InvalidError, NotFoundError

log = logging.getLogger(__name__)
_INJECTED = "cert-manager.io/inject-"


@dataclass(frozen=True, slots=True)
class Installer:
    """Keeps both configurations."""

    registration: Registration

    async def install(self, client: Client, trusted: bytes) -> bool:
        """Have API servers trust these authorities, if any; says whether something was written."""
        changed = False
        for resource, wanted in (
            (MUTATING, mutating(self.registration)),
            (VALIDATING, validating(self.registration)),
        ):
            changed |= await self._install(client, resource, wanted, trusted)
        return changed

    async def _install(
        self, client: Client, resource: Resource[Untyped], wanted: Untyped, trusted: bytes
    ) -> bool:
        name = self.registration.name
        try:
            found = await client.get(resource, name)
        except NotFoundError:
            return await _create(client, resource, trusting(wanted, trusted))
        changes = corrections(found, wanted, trusted, with_policy=bool(self.registration.policy))
        if changes:
            await client.patch(resource, name, change=json_patch(changes))
            log.info("corrected %s %s", resource.kind, name)
        return bool(changes)


async def _create(client: Client, resource: Resource[Untyped], wanted: Untyped) -> bool:
    try:
        await client.create(wanted, resource)
    except AlreadyExistsError:  # by another replica, with the same in it
        return False
    except InvalidError as error:
        if CONDITIONS not in str(error) or not any(CONDITIONS in one for one in _hooks(wanted)):
            raise
        log.warning("%s without match conditions: %s", resource.kind, error)
        return await _create(client, resource, _unconditional(wanted))
    log.info("made %s %s", resource.kind, _dict(wanted["metadata"])["name"])
    return True


def _unconditional(wanted: Untyped) -> Untyped:
    return {**wanted, "webhooks": [unconditional(hook) for hook in _hooks(wanted)]}


def trusting(wanted: Untyped, trusted: bytes) -> Untyped:
    """A configuration that names the authorities to trust."""
    if not trusted:
        return wanted
    bundle = base64.b64encode(trusted).decode()
    hooks = [
        {**hook, "clientConfig": {**_dict(hook["clientConfig"]), "caBundle": bundle}}
        for hook in _hooks(wanted)
    ]
    return {**wanted, "webhooks": hooks}


def corrections(
    found: Untyped, wanted: Untyped, trusted: bytes, *, with_policy: bool
) -> list[PatchOperation]:
    """What has to change in a configuration that is there already."""
    ours = {hook["name"]: hook for hook in _hooks(wanted)}
    bundle = "" if _is_injected(found) else base64.b64encode(trusted).decode()
    changes: list[PatchOperation] = []
    for index, hook in enumerate(_hooks(found)):
        if (own := ours.get(hook.get("name"))) is None:
            continue
        place = f"/webhooks/{index}"
        edits = [*_trust(place, hook, bundle), *(_policy(place, hook, own) if with_policy else ())]
        if edits:
            changes += [{"op": "test", "path": f"{place}/name", "value": hook["name"]}, *edits]
    return changes


def _trust(place: str, hook: Untyped, bundle: str) -> Iterator[PatchOperation]:
    if bundle and _dict(hook.get("clientConfig")).get("caBundle") != bundle:
        yield {"op": "add", "path": f"{place}/clientConfig/caBundle", "value": bundle}


def _policy(place: str, hook: Untyped, own: Untyped) -> Iterator[PatchOperation]:
    if hook.get("failurePolicy") != own["failurePolicy"]:
        yield {"op": "add", "path": f"{place}/failurePolicy", "value": own["failurePolicy"]}


def _is_injected(found: Untyped) -> bool:
    annotations = _dict(_dict(found.get("metadata")).get("annotations"))
    return any(name.startswith(_INJECTED) for name in annotations)


def _hooks(configuration: Untyped) -> list[Untyped]:
    found = configuration.get("webhooks")
    return [_dict(hook) for hook in found] if isinstance(found, list) else []


def _dict(found: object) -> Untyped:
    return cast("Untyped", found) if isinstance(found, dict) else {}
