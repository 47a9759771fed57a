"""`bayplan explain`: why a pod goes where it goes, or goes nowhere and what would help."""

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
from bayplan.cli.text.explain import NOBODY, blocks
from bayplan.cli.text.output import Format, emit_many, notices, printable, show
from bayplan.cli.text.progress import LOADING, Bar
from bayplan.fit import Snapshot
from bayplan.kube.loading import Loaded
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import Namespace
from bayplan.reports.explain import (
    KUBECTLS_WORDS,
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
    "pods claim devices, and there is no ResourceClaim in the dump: add"
    " resourceclaims,deviceclasses to what kubectl gets"
)


def explain(  # noqa: PLR0913 - one for each option
    pod: Annotated[str | None, Parameter(help="The pod, as NAMESPACE/POD, POD or pod/POD.")] = None,
    /,
    *,
    source: ClusterSource = HERE,
    all_pending: Annotated[
        bool, Parameter(negative="", help="Explain every pod that waits for a node.")
    ] = False,
    manifest: Annotated[
        str | None,
        Parameter(
            name="--pod",
            help="Explain the pods of a manifest that is not in the cluster: of a Pod, or of what"
            " makes pods after a template. What else the file holds is taken as there.",
        ),
    ] = None,
    what_if: WhatIf = AS_IT_IS,
    fixes: Annotated[
        bool, Parameter(help="Look for the smallest changes that would make a pod fit.")
    ] = True,
    judge: As = None,
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Say where a pod would go and why, or why it fits nowhere and what would help.

    For every node: the plugin that refuses the pod and its reasons, or the node's score. For a pod
    that fits nowhere: the line that kube-scheduler would write, what preemption would do, and the
    nearest fixes, each of which has been tried on a copy of the cluster. For a pod that waits for
    its queue, that comes first; a dump must have the Queues and PodGroups then.

    The cluster is a dump (-f), or the one that kubectl would talk to, of which only lists are read.
    With --all-pending, -n picks whose pods are told; those of others take their places all the
    same.

    A pod is judged as the scheduler would that it names; --feature-gates and --missing-driver say
    how Bayplan's is set. Where the other scheduler would answer differently, that is said.

    With --all-pending, pods are taken as kube-scheduler takes them: by priority, then by age, and
    each that fits is taken as placed before the next is looked at. Those alike are told together.

    Exit codes: 0 it fits (all do), 1 it does not (some do not), 2 bad input, 5 it cannot be judged,
    since devices would have to be allocated first (some cannot, and all others fit).
    """
    if sum((pod is not None, all_pending, manifest is not None)) != 1:
        raise BadInput("give one pod as NAMESPACE/POD, or --pod FILE, or --all-pending")
    what_if.check(of_one=not all_pending)
    rules = profile_from(feature_gates, missing_driver)
    asking = _Asking(pod or "", source, manifest, what_if.replicas)
    with Bar() as bar:
        loaded = source.load(
            "explain", asked=f"explain {asking}", namespace=asking.namespace(), progress=bar
        )
        bar.at("Counting", LOADING)
        snapshot = Snapshot.of(loaded, profile=judged_as(rules, judge))
        held = held_by_queues(loaded.objects)
        what_if.apply(snapshot, loaded.objects)
        asked = asking.pods(snapshot)
        if lacks_device_claims(snapshot, asked):
            notices().print(NO_CLAIMS, style="yellow")
        bench = RulesComparison(snapshot, judge, rules.plugins, held)
        thorough = len(asked) == 1 or output is not Format.table
        pods = bar.computing("Explaining pod", asked)
        found = explain_pods(
            snapshot,
            pods,
            bench,
            with_fixes=fixes,
            with_nodes=thorough,
            tells=lambda one: not all_pending or source.shows(one.namespace),
        )
    _print(found, held, loaded, source, output)
    return _exit_code(found, held, loaded, all_pending=all_pending)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Which pods are asked about: one of the dump, those of a manifest, or all that wait."""

    name: str
    source: ClusterSource
    manifest: str | None
    replicas: int

    def __str__(self) -> str:
        return f"--pod {self.manifest}" if self.manifest else self.name or "--all-pending"

    def pods(self, snapshot: Snapshot) -> list[Pod]:
        """They themselves; BadInput if they are not there."""
        if self.manifest is not None:
            return pods_of_manifest(snapshot, self.manifest, self.replicas)
        if not self.name:
            return pending_pods(snapshot, self.source.where)
        found = find_pod(snapshot, self.name, self.namespace(), self.source.where)
        return list(replicas(snapshot, found, self.replicas))

    def namespace(self) -> str:
        """That of the one pod, if it is asked about."""
        if not self.name:
            return ""
        said, slash, _ = self.name.partition("/")
        return said if slash and said not in KUBECTLS_WORDS else self.source.home()


def _print(
    found: list[EquivalentPods],
    held: HeldPods,
    loaded: Loaded,
    source: ClusterSource,
    output: Format,
) -> None:
    if output.is_for_people:
        notes = source.notes(loaded, "explain")
        nobody = _nobody(loaded, source.chosen)
        show(blocks(found, held, notes, nobody=nobody, wide=output is Format.wide))
    else:
        told = (explanation_data(one, held.get(one.explanation.pod)) for one in found)
        head: JsonObject = {
            "leftOut": len(loaded.problems),
            "incomplete": incomplete_data(loaded, "explain"),
            "summary": summary_data(found, held),
        }
        emit_many(head, "explanations", told, output)


def _nobody(loaded: Loaded, namespace: str) -> str:
    """What is said if no pod waits: where one may have been looked for that is not there."""
    if not namespace:
        return NOBODY
    said = f"{NOBODY} in namespace {printable(namespace[:200])}"
    if any(isinstance(one, Pod) and one.namespace == namespace for one in loaded.objects):
        return said
    known = [one.name for one in loaded.objects if isinstance(one, Namespace)]
    missing = bool(known) and namespace not in known
    return f"{said}: {'there is no such namespace' if missing else 'there are no pods in it'}"


def _exit_code(
    found: list[EquivalentPods], held: HeldPods, loaded: Loaded, *, all_pending: bool
) -> int:
    if all_pending and misses_pods(loaded):
        return EXIT_BAD_INPUT
    waiting = [one for one in found if not one.fits or one.explanation.pod in held]
    if not waiting:
        return EXIT_OK
    cannot_say = all(one.explanation.unjudged for one in waiting)
    return EXIT_UNJUDGED if cannot_say else EXIT_NO
