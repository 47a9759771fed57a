"""`bayplan explain`: why a pod goes where it goes, or goes nowhere and what would help."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from bayplan.cli.cluster import (
    Gates,
    Missing,
    Output,
    Source,
    load_objects,
    misses_pods,
    profile_from,
)
from bayplan.cli.errors import EXIT_BAD_INPUT, EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.explain_data import as_data
from bayplan.cli.explain_text import blocks
from bayplan.cli.held import Held, held_by_queues
from bayplan.cli.output import Format, emit, printable, show
from bayplan.cli.pending import explain_pending
from bayplan.fit import Snapshot
from bayplan.fit.explanation import Explanation
from bayplan.kube.codec import DEFAULT_NAMESPACE, identify
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

MOST_MEANT = 3


def explain(  # noqa: PLR0913 - one for each option
    pod: Annotated[str | None, Parameter(help="The pod, as NAMESPACE/POD.")] = None,
    /,
    *,
    filename: Source = None,
    namespace: Annotated[
        str, Parameter(alias="-n", help="The namespace of a POD that does not say its own.")
    ] = DEFAULT_NAMESPACE,
    all_pending: Annotated[
        bool, Parameter(negative="", help="Explain every pod that waits for a node.")
    ] = False,
    fixes: Annotated[
        bool, Parameter(help="Look for the smallest changes that would make a pod fit.")
    ] = True,
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Say where a pod would go and why, or why it fits nowhere and what would help.

    For every node: the plugin that refuses the pod and its reasons, or the node's score. For a pod
    that fits nowhere: the line that kube-scheduler would write, what preemption would do, and the
    nearest fixes, each of which has been tried on a copy of the cluster. For a pod that waits for
    its queue, that comes first; the dump must have the Queues and PodGroups then.

    With --all-pending, pods are taken as kube-scheduler takes them: by priority, then by age, and
    each that fits is taken as placed before the next is looked at.

    Exit codes: 0 it fits (all do), 1 it does not (some do not), 2 bad input.
    """
    if (pod is None) is not all_pending:
        raise BadInput("give one pod as NAMESPACE/POD, or --all-pending")
    profile = profile_from(feature_gates, missing_driver)
    loaded = load_objects(filename, "explain --all-pending" if all_pending else f"explain {pod}")
    snapshot, held = Snapshot.of(loaded, profile=profile), held_by_queues(loaded.objects)
    if pod is not None:
        found = [snapshot.explain(find_pod(snapshot, pod, namespace), with_fixes=fixes)]
    else:
        _refuse_nothing(snapshot)
        found = list(explain_pending(snapshot, held, with_fixes=fixes))
    _print(found, held, snapshot, output)
    return _exit_code(found, held, snapshot, all_pending=all_pending)


def find_pod(snapshot: Snapshot, name: str, namespace: str = DEFAULT_NAMESPACE) -> Pod:
    """The pod of that name; BadInput if the dump has none that can be used."""
    key = name if "/" in name else f"{namespace}/{name}"
    said, _, bare = key.partition("/")
    _refuse_bad_pod(snapshot, said, bare)
    found = snapshot.get(Pod, key)
    if not isinstance(found, Pod):
        hint = _elsewhere(snapshot, bare)
        raise BadInput(f"there is no pod {printable(key[:200])} in the dump{hint}")
    return found


def _elsewhere(snapshot: Snapshot, name: str) -> str:
    """Where else there is a pod of that name."""
    keys = [
        obj.key for obj in snapshot.objects() if isinstance(obj, Pod) and obj.metadata.name == name
    ]
    return f"; did you mean {printable(', '.join(sorted(keys)[:MOST_MEANT]))}?" if keys else ""


def _refuse_nothing(snapshot: Snapshot) -> None:
    """That nobody waits can be said only of a dump with something in it."""
    if not any(isinstance(obj, Node | Pod) for obj in snapshot.objects()):
        raise BadInput("there is neither a pod nor a node in the dump")


def _refuse_bad_pod(snapshot: Snapshot, namespace: str, name: str) -> None:
    """A pod that was left out is bad input, not a pod that is not there."""
    names = {identify("Pod", namespace, name)}
    if namespace == DEFAULT_NAMESPACE:
        names.add(identify("Pod", "", name))
    for problem in snapshot.problems:
        if problem.identity in names:
            raise BadInput(f"the pod cannot be used: {printable(str(problem))}")


def _print(found: list[Explanation], held: Held, snapshot: Snapshot, output: Format) -> None:
    left_out = len(snapshot.problems)
    if output.is_for_people:
        show(blocks(found, held, left_out, wide=output is Format.wide))
    else:
        told = [as_data(one, held.get(one.pod)) for one in found]
        emit({"leftOut": left_out, "explanations": told}, output)


def _exit_code(
    found: list[Explanation], held: Held, snapshot: Snapshot, *, all_pending: bool
) -> int:
    if all_pending and misses_pods(snapshot.problems):
        return EXIT_BAD_INPUT
    return EXIT_OK if all(one.fits and one.pod not in held for one in found) else EXIT_NO
