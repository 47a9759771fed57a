"""The facts behind refusals, by node."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.fit import Snapshot
from bayplan.fit.explanation import explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    PodBuilder,
)


def details(objects: Sequence[KubeObject], pod: PodBuilder) -> dict[str, tuple[str, ...]]:
    nodes = explain(Snapshot(objects), pod.obj(), with_fixes=False).nodes
    return {answer.name: answer.details for answer in nodes}
