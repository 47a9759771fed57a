"""A pod's status: how its conditions change, and what a writer need not repeat."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject


def set_condition(status: JsonObject, condition: JsonObject, now: str) -> None:
    """Let a condition hold; its time is when it last became something else."""
    conditions = list(status.get("conditions") or ())
    wanted = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, one in enumerate(conditions):
        if one.get("type") == condition["type"]:
            if one.get("status") == condition["status"]:
                wanted["lastTransitionTime"] = one.get("lastTransitionTime")
            conditions[index] = wanted
            break
    else:
        conditions.append(wanted)
    status["conditions"] = conditions


def keep_unsaid(new: JsonObject, old: JsonObject) -> None:
    """Keep what a writer of the status leaves out: the class of service, and generations seen."""
    status, before = new.setdefault("status", {}), old.get("status") or {}
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and before.get(name):
            status[name] = before[name]
    seen: dict[str, list[int]] = {}
    for one in before.get("conditions") or ():
        seen.setdefault(one.get("type") or "", []).append(one.get("observedGeneration") or 0)
    for one in status.get("conditions") or ():
        known = seen.get(one.get("type") or "")
        generation = known.pop(0) if known else 0
        if generation and not one.get("observedGeneration"):
            one["observedGeneration"] = generation
