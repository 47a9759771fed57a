"""What the commands about a cluster have in common: where it comes from, and the rules it obeys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Literal

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.cli.text.output import Format, notices, printable
from bayplan.cli.text.progress import Bar
from bayplan.fit import MissingDriver, Profile
from bayplan.fit.profile import OUR_SCHEDULER
from bayplan.fit.rules import KUBERNETES_VERSION
from bayplan.kube import codec
from bayplan.kube.codec import ObjectError
from bayplan.kube.gates import FeatureGates, GateError
from bayplan.kube.loading import Loaded, LoadError, load

MAX_VOLUMES = "KUBE_MAX_PD_VOLS"
MISSPELT = 0.8
"""How alike a kind must be to one that matters to be taken for a slip of the pen."""
MOST_PROBLEMS_SHOWN = 20
KINDS = (
    "pods,nodes,namespaces,csinodes,csidrivers,csistoragecapacities,storageclasses,"
    "persistentvolumes,persistentvolumeclaims,volumeattachments,services,replicasets,statefulsets,"
    "replicationcontrollers,poddisruptionbudgets,priorityclasses,daemonsets,"
    "jobs"
)
"""Every kind that decides what fits, as kubectl takes them."""
NEEDS_A_DUMP = (
    "-f names nothing: give a dump with -f FILE, -f DIR or -f - such as\n"
    "  bayplan dump | bayplan {command} -f -\n"
    "or leave it out to ask the cluster that kubectl would talk to"
)

Source = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--filename", "-f"],
        allow_leading_hyphen=True,
        show_default=False,
        help="Dump of the cluster: a file (JSON or YAML, also gzipped), a directory, or - for"
        " standard input; may be repeated, and the last word on an object counts.",
    ),
]
Partial = Annotated[
    bool,
    Parameter(
        negative="",
        help="Make do with what can be read of a dump that is cut or malformed; without it, that"
        " is an error.",
    ),
]
As = Annotated[
    Literal["kube-scheduler", "bayplan"] | None,
    Parameter(
        name="--as",
        help=f"Judge pods by the rules of kube-scheduler {KUBERNETES_VERSION}, or of Bayplan;"
        " without it, each as the scheduler would that it names.",
    ),
]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="table, wide, json or yaml.")]
Gates = Annotated[
    str, Parameter(help="Feature gates, such as VolumeLimitScaling=false,AttachVolumeLimit=true.")
]
Missing = Annotated[
    Literal["hold-back", "opt-in"],
    Parameter(
        help="What a node without a pod's CSI driver means: hold-back refuses the pod unless the"
        " driver opts out (preventPodSchedulingIfMissing: false), opt-in refuses it only if the"
        " driver opts in (true), as Kubernetes 1.36 does."
    ),
]


def profile_from(
    gates: str, missing_driver: str, environment: Mapping[str, str] = os.environ
) -> Profile:
    """The rules that the command line and the environment ask for."""
    return Profile(
        gates=gates_from(gates),
        missing_driver=MissingDriver(missing_driver),
        max_volumes_override=_max_volumes(environment.get(MAX_VOLUMES, "")),
    )


def gates_from(written: str) -> FeatureGates:
    """The feature gates that the command line asks for."""
    try:
        return FeatureGates.parse(written)
    except GateError as error:
        raise BadInput(f"--feature-gates: {error}") from None


def judged_as(profile: Profile, judge: str | None) -> Profile:
    """The profile by which pods are judged: ours or kube-scheduler's, or each by its own."""
    if judge is None:
        return profile.by_scheduler()
    return profile if judge == OUR_SCHEDULER else profile.as_kube_scheduler()


def load_objects(
    sources: Sequence[str],
    command: str,
    *,
    partial: bool = False,
    progress: Bar | None = None,
    events: bool = False,
) -> Loaded:
    """All objects of a dump, with its events if asked for; what cannot be used is told on stderr.

    BadInput if some of it cannot even be read, unless what is left will do.
    """
    if not sources or not all(sources):
        raise BadInput(NEEDS_A_DUMP.format(command=printable(command[:200])))
    loaded = Loaded()
    try:
        with progress or Bar() as bar:
            for number, source in enumerate(sources):
                loaded.join(load(source, progress=bar.loading(number, len(sources)), events=events))
    except LoadError as error:
        raise BadInput(printable(str(error))) from None
    if loaded.unreadable and not partial:
        raise BadInput(_cut(loaded.unreadable))
    report_problems(loaded.problems)
    report_misspelt(loaded.skipped)
    _report_repeated(loaded.drop_repeated())
    return loaded


def _cut(unreadable: Sequence[ObjectError]) -> str:
    shown = [printable(str(one)) for one in unreadable[:MOST_PROBLEMS_SHOWN]]
    more = len(unreadable) - len(shown)
    lines = [*shown, f"and {more} more"] if more else shown
    said = "the dump is cut or malformed; --partial makes do with what can be read of it"
    return "\n  ".join([f"{said}:", *lines])


def _report_repeated(repeated: Mapping[str, int]) -> None:
    """Say which objects were there more than once."""
    console = notices()
    for name, count in list(repeated.items())[:MOST_PROBLEMS_SHOWN]:
        told = f"there {count} times, the last counts: {printable(name)}"
        console.print(told, style="yellow")
    more = len(repeated) - MOST_PROBLEMS_SHOWN
    if more > 0:
        console.print(f"there more than once: {more} more", style="yellow")


def report_problems(problems: Sequence[ObjectError]) -> None:
    """Say which objects were left out, and why."""
    console = notices()
    for problem in problems[:MOST_PROBLEMS_SHOWN]:
        console.print(f"left out: {printable(str(problem))}", style="yellow")
    more = len(problems) - MOST_PROBLEMS_SHOWN
    if more > 0:
        console.print(f"left out: {more} more", style="yellow")


def misses_pods(loaded: Loaded) -> bool:
    """Whether pods may be among what was left out: one of them, or text that could hold many."""
    pods = (one for one in loaded.problems if one.identity.startswith("Pod "))
    return bool(loaded.unreadable) or any(pods)


def those_left_out(count: int, where: str = "dump") -> str:
    """That so many objects did not count."""
    those = "1 object" if count == 1 else f"{count} objects"
    return f"note: {those} of the {where} could not be used, and therefore did not count"


def report_misspelt(skipped: Mapping[str, int]) -> None:
    """Say which kinds were passed over that look like others; most are just of no concern here."""
    for name in skipped:
        kind = name.partition(" ")[0]
        meant = get_close_matches(kind, codec.KINDS, n=1, cutoff=MISSPELT)
        if meant and kind not in codec.KINDS:
            told = f"passed over: {printable(name)}; did you mean {meant[0]}?"
            notices().print(told, style="yellow")


def _max_volumes(written: str) -> int | None:
    if not written:
        return None
    if not (written.isascii() and written.isdecimal()) or len(written) > 9 or int(written) == 0:
        raise BadInput(f"{MAX_VOLUMES}={printable(written[:40])}: not a positive whole number")
    return int(written)
