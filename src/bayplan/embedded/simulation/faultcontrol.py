"""Faults by kubectl: the ConfigMap `bayplan-faults` in `kube-system` is the control.

Each of its entries is a fault in YAML, under a name of your choice; adding an entry injects the
fault, removing it is the recovery:

    kubectl -n kube-system create configmap bayplan-faults \
        --from-literal=one='{kind: node-dies, node: workers-1}'

An entry that cannot be read, or is aimed at nobody, is refused when it is written. One that an
earlier run with another cluster file left behind is reported as an event and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import yaml

from bayplan.base.configfiles import FieldProblem, shaped
from bayplan.base.yaml_values import YamlError, build
from bayplan.embedded.apiserver.errors import Cause, invalid
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Do, Plan, Stage, Tell
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.storages import CONFIG_MAPS
from bayplan.embedded.simulation.clusterfile.faults import FaultSection, Targets

CONTROL = Key(CONFIG_MAPS, "kube-system", "bayplan-faults")
_PREFIX = "control/"


class FaultControl(Controller[Key]):
    """Follows one ConfigMap."""

    name = "fault-control"
    storages = (CONFIG_MAPS,)

    def __init__(self, stage: Stage, targets: Targets) -> None:
        self._stage = stage
        self._targets = targets

    def notice(self, change: Change) -> Iterable[Key]:
        """The control, and no other ConfigMap."""
        return (CONTROL,) if change.entry.key == CONTROL else ()

    async def admit(self, request: AdmissionRequest) -> None:
        """Refuse entries that could do nothing; ApiError if there is one among the new ones."""
        call = request.call
        if Key(call.kind.storage, call.namespace, call.name) != CONTROL or request.object is None:
            return
        before = (request.old_object or {}).get("data") or {}
        causes = [
            Cause("FieldValueInvalid", problem, f"data.{name}")
            for name, text in sorted((request.object.get("data") or {}).items())
            if before.get(name) != text and (problem := self._problem(text))
        ]
        if causes:
            raise invalid("", "ConfigMap", call.name, causes)

    def _problem(self, text: str) -> str:
        try:
            parse_fault(text, self._targets)
        except ValueError as problem:
            return str(problem)[:500]
        return ""

    def decide(self, key: Key) -> Plan:
        """Let the board show what the ConfigMap says."""
        board = self._stage.faults
        entries = (self._stage.view.object(key) or {}).get("data") or {}
        wanted: dict[str, Fault] = {}
        plan: Plan = []
        for name in sorted(entries):
            try:
                wanted[_PREFIX + name] = parse_fault(entries[name], self._targets)
            except ValueError as problem:
                plan.append(Tell(key, "BadFault", f"{name}: {problem}"[:500], "Warning"))
        mine = [one for one in board.active if one.startswith(_PREFIX)]
        for name in mine:
            if name not in wanted:
                plan.append(Do(f"clear {name}", partial(board.clear, name)))
        for name, fault in wanted.items():
            if board.active.get(name) != fault:
                plan.append(Do(f"inject {name}", partial(board.inject, name, fault)))
        return plan


def parse_fault(text: str, targets: Targets) -> Fault:
    """A fault as a cluster file writes it, without its times; ValueError if it is none."""
    try:
        value = build(yaml.parse(text, Loader=yaml.CSafeLoader))
        return shaped(value, FaultSection).fault(targets)
    except FieldProblem as problem:
        raise ValueError(str(problem)) from None
    except (YamlError, yaml.YAMLError) as error:
        raise ValueError(" ".join(str(error).split())[:300]) from None
