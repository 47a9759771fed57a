"""`bayplan explain`: why a pod is scheduled to a node, or why it is unschedulable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.values import JsonObject
from bayplan.cli.errors import EXIT_BAD_INPUT, EXIT_NO, EXIT_OK, EXIT_UNJUDGED, BadInput
from bayplan.cli.options.cluster import (
    As,
    Gates,
    Missing,
    Output,
    judged_as,
    misses_pods,
    profile_from,
)
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.options.what_if import AS_IT_IS, WhatIf
from bayplan.cli.text.explain import NO_PENDING_PODS, blocks
from bayplan.cli.text.output import Format, emit_many, notices, printable, show
from bayplan.cli.text.progress import LOADING, ProgressBar
from bayplan.fit import Snapshot
from bayplan.kube.manifests import LoadResult
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import Namespace
from bayplan.reports.explain import (
    KUBECTL_PREFIXES,
    explanation_data,
    find_pod,
    lacks_device_claims,
    pending_pods,
    pods_of_manifest,
    summary_data,
)
from bayplan.reports.judgement import RulesComparison
from bayplan.reports.pending import EquivalentPods, HeldPods, explain_pods, held_by_queues
from bayplan.reports.what_if import replicas

NO_CLAIMS = (
    "pods claim devices, but the dump contains no ResourceClaim: add"
    " resourceclaims,deviceclasses to the kinds of kubectl get"
)


def explain(  # noqa: PLR0913 - one for each option
    pod: Annotated[str | None, Parameter(help="The pod, as NAMESPACE/POD, POD or pod/POD.")] = None,
    /,
    *,
    source: ClusterSource = HERE,
    all_pending: Annotated[bool, Parameter(negative="", help="Explain all pending pods.")] = False,
    manifest: Annotated[
        str | None,
        Parameter(
            name="--pod",
            help="Explain the pods of a manifest that is not in the cluster: of a Pod, or of a"
            " workload with a pod template. Other objects of the file are assumed to exist.",
        ),
    ] = None,
    what_if: WhatIf = AS_IT_IS,
    fixes: Annotated[
        bool, Parameter(help="Search for the smallest changes with which a pod would fit.")
    ] = True,
    judge: As = None,
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Explain to which node a pod would be scheduled, or why none fits and what would help.

    For every node: the plugin that rejects the pod and its reasons, or the node's score. For an
    unschedulable pod: kube-scheduler's message, what preemption would do, and the smallest fixes,
    each tried on a copy of the cluster. A pod that waits for its queue is reported as such; a dump
    needs the Queues and PodGroups for that.

    The cluster is a dump (-f), or the one that kubectl uses, which is only read.

    A pod is evaluated by the rules of its own scheduler; --feature-gates and --missing-driver
    configure Bayplan's. If the other scheduler would decide differently, a note explains how.

    With --all-pending, pods are evaluated in kube-scheduler's order, by priority and age, and each
    pod that fits is assumed before the next. Equivalent pods are explained together. With -n, only
    pods of that namespace are explained; those of other namespaces are still assumed.

    Exit codes: 0 it fits (all do), 1 it does not fit (some do not), 2 bad input, 5 unknown, since
    devices would have to be allocated first (of some, and all others fit).
    """
    if sum((pod is not None, all_pending, manifest is not None)) != 1:
        raise BadInput("give exactly one of NAMESPACE/POD, --pod FILE and --all-pending")
    what_if.check(of_one=not all_pending)
    rules = profile_from(feature_gates, missing_driver)
    request = _Request(pod or "", source, manifest, what_if.replicas)
    with ProgressBar() as bar:
        loaded = source.load(
            "explain", asked=f"explain {request}", namespace=request.namespace(), progress=bar
        )
        bar.at("Indexing", LOADING)
        snapshot = Snapshot.of(loaded, profile=judged_as(rules, judge))
        held = held_by_queues(loaded.objects)
        what_if.apply(snapshot, loaded.objects)
        asked = request.pods(snapshot)
        if lacks_device_claims(snapshot, asked):
            notices().print(NO_CLAIMS, style="yellow")
        comparison = RulesComparison(snapshot, judge, rules.plugins, held)
        thorough = len(asked) == 1 or output is not Format.table
        pods = bar.computing("Explaining pod", asked)
        found = explain_pods(
            snapshot,
            pods,
            comparison,
            with_fixes=fixes,
            with_nodes=thorough,
            reports=lambda one: not all_pending or source.shows(one.namespace),
        )
    _print(found, held, loaded, source, output)
    return _exit_code(found, held, loaded, all_pending=all_pending)


@dataclass(frozen=True, slots=True)
class _Request:
    """The pods to explain: one of the cluster, those of a manifest, or all pending ones."""

    name: str
    source: ClusterSource
    manifest: str | None
    replicas: int

    def __str__(self) -> str:
        return f"--pod {self.manifest}" if self.manifest else self.name or "--all-pending"

    def pods(self, snapshot: Snapshot) -> list[Pod]:
        """Return the pods; InputError if they do not exist."""
        if self.manifest is not None:
            return pods_of_manifest(snapshot, self.manifest, self.replicas)
        if not self.name:
            return pending_pods(snapshot, self.source.where)
        found = find_pod(snapshot, self.name, self.namespace(), self.source.where)
        return list(replicas(snapshot, found, self.replicas))

    def namespace(self) -> str:
        """Return the namespace of the one pod; empty for several."""
        if not self.name:
            return ""
        prefix, slash, _ = self.name.partition("/")
        return prefix if slash and prefix not in KUBECTL_PREFIXES else self.source.home()


def _print(
    found: list[EquivalentPods],
    held: HeldPods,
    loaded: LoadResult,
    source: ClusterSource,
    output: Format,
) -> None:
    if output.is_for_people:
        notes = source.notes(loaded, "explain")
        empty = _empty_message(loaded, source.chosen)
        show(blocks(found, held, notes, empty=empty, wide=output is Format.wide))
    else:
        explanations = (
            explanation_data(one, held.get(one.explanation.pod), with_old_names=True)
            for one in found
        )
        head: JsonObject = {
            "leftOut": len(loaded.problems),
            "incomplete": incomplete_data(loaded, "explain"),
            "summary": summary_data(found, held),
        }
        emit_many(head, "explanations", explanations, output)


def _empty_message(loaded: LoadResult, namespace: str) -> str:
    """Return the message if there are no pending pods; a missing namespace is named."""
    if not namespace:
        return NO_PENDING_PODS
    message = f"{NO_PENDING_PODS} in namespace {printable(namespace[:200])}"
    if any(isinstance(one, Pod) and one.namespace == namespace for one in loaded.objects):
        return message
    known = [one.name for one in loaded.objects if isinstance(one, Namespace)]
    missing = bool(known) and namespace not in known
    return f"{message}: {'the namespace does not exist' if missing else 'it has no pods'}"


def _exit_code(
    found: list[EquivalentPods], held: HeldPods, loaded: LoadResult, *, all_pending: bool
) -> int:
    if all_pending and misses_pods(loaded):
        return EXIT_BAD_INPUT
    waiting = [one for one in found if not one.fits or one.explanation.pod in held]
    if not waiting:
        return EXIT_OK
    is_unknown = all(one.explanation.unjudged for one in waiting)
    return EXIT_UNJUDGED if is_unknown else EXIT_NO
