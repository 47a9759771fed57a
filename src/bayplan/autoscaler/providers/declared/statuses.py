"""What is wrong with NodeGroups, written into their status.

    status:
      observedGeneration: 3
      problems: ["csiDrivers.ebs.csi.aws.com: 'many': the limit must be a whole number, or none"]
      conditions: [{type: Accepted, status: "False", reason: HasProblems, ...}]

Only a status that says something else is written. One that cannot be written is tried again in the
next round; nothing waits for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bayplan.client import Client, Informer, Untyped, merge
from bayplan.client.errors import ClientError
from bayplan.client.objects import name_of, uid_of
from bayplan.kube.times import timestamp
from bayplan.nodegroups import GroupProblem

log = logging.getLogger(__name__)
_MOST = 20
"""Problems that are listed; who has more finds them when these are gone."""


class Statuses:
    """Writes the status of NodeGroups."""

    def __init__(self, client: Client, informer: Informer[Untyped]) -> None:
        self._client = client
        self._informer = informer

    async def tell(self, problems: Sequence[GroupProblem]) -> None:
        """Bring every status up to date."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for one in problems:
            if one.about is not None:
                found[one.about.uid].append(one.text)
        for item in list(self._informer.objects.values()):
            await self._write(item, found[uid_of(item)][:_MOST])

    async def _write(self, item: Untyped, problems: list[str]) -> None:
        current = item.get("status")
        known: Mapping[str, object] = current if isinstance(current, dict) else {}
        wanted = self._status(item, known, problems)
        if wanted == {name: known.get(name) for name in wanted}:
            return
        change = merge({"metadata": {"uid": uid_of(item)}, "status": wanted})
        try:
            await self._client.patch(
                self._informer.resource, name_of(item), change=change, subresource="status"
            )
        except ClientError as error:
            log.warning("status of NodeGroup %s: %s", name_of(item), error)

    def _status(
        self, item: Untyped, known: Mapping[str, object], problems: list[str]
    ) -> dict[str, object]:
        meta = item.get("metadata")
        generation = meta.get("generation", 0) if isinstance(meta, dict) else 0
        status = "False" if problems else "True"
        condition = {
            "type": "Accepted",
            "status": status,
            "reason": "HasProblems" if problems else "AsDeclared",
            "message": problems[0] if problems else "",
            "lastTransitionTime": _since(known, status) or timestamp(self._client.clock.now()),
        }
        return {
            "observedGeneration": generation,
            "problems": problems,
            "conditions": [condition],
        }


def _since(known: Mapping[str, object], status: str) -> str:
    """Since when the condition has been as it is; empty if it has not."""
    conditions = known.get("conditions")
    for one in conditions if isinstance(conditions, list) else []:
        if isinstance(one, dict) and one.get("status") == status:
            return str(one.get("lastTransitionTime", ""))
    return ""
