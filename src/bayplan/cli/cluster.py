"""What the commands about a cluster have in common: where it comes from, and the rules it obeys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.cli.output import Format, notices, printable
from bayplan.fit import MissingDriver, Profile, Snapshot
from bayplan.kube import codec
from bayplan.kube.codec import ObjectError
from bayplan.kube.gates import FeatureGates, GateError
from bayplan.kube.loading import Loaded, LoadError, load

if TYPE_CHECKING:
    from bayplan.kube.loading import Progress

MAX_VOLUMES = "KUBE_MAX_PD_VOLS"
MISSPELT = 0.8
"""How alike a kind must be to one that matters to be taken for a slip of the pen."""
MOST_PROBLEMS_SHOWN = 20
MAY_BE_PODS = ("Pod ", "document ", "line ")
"""How problems are called that are about a pod, or about text that could hold many."""
KINDS = (
    "pods,nodes,namespaces,csinodes,csidrivers,csistoragecapacities,storageclasses,"
    "persistentvolumes,persistentvolumeclaims,volumeattachments,services,replicasets,statefulsets,"
    "replicationcontrollers,poddisruptionbudgets,priorityclasses,daemonsets,"
    "jobs"
)
"""Every kind that decides what fits, as kubectl takes them."""
NEEDS_A_DUMP = (
    "a dump of the cluster is needed: give one with -f FILE, -f DIR or -f - such as\n"
    f"  kubectl get --all-namespaces -o json {KINDS} | bayplan {{command}} -f -"
)

Source = Annotated[
    str | None,
    Parameter(
        name=["--filename", "-f"],
        allow_leading_hyphen=True,
        help="Dump of the cluster: a file (JSON or YAML, also gzipped), a directory, or - for"
        " standard input.",
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


def load_snapshot(source: str | None, profile: Profile, command: str) -> Snapshot:
    """The snapshot of a dump; what of it cannot be used is told on standard error."""
    return Snapshot.of(load_objects(source, command), profile=profile)


def load_objects(source: str | None, command: str) -> Loaded:
    """All objects of a dump; what of it cannot be used is told on standard error."""
    if not source:
        raise BadInput(NEEDS_A_DUMP.format(command=printable(command[:200])))
    try:
        loaded = _load_with_progress(source)
    except LoadError as error:
        raise BadInput(printable(str(error))) from None
    report_problems(loaded.problems)
    report_misspelt(loaded.skipped)
    return loaded


def report_problems(problems: Sequence[ObjectError]) -> None:
    """Say which objects were left out, and why."""
    console = notices()
    for problem in problems[:MOST_PROBLEMS_SHOWN]:
        console.print(f"left out: {printable(str(problem))}", style="yellow")
    more = len(problems) - MOST_PROBLEMS_SHOWN
    if more > 0:
        console.print(f"left out: {more} more", style="yellow")


def misses_pods(problems: Sequence[ObjectError]) -> bool:
    """Whether pods may be among what was left out."""
    return any(one.identity.startswith(MAY_BE_PODS) for one in problems)


def those_left_out(count: int) -> str:
    """That so many objects did not count."""
    those = "1 object" if count == 1 else f"{count} objects"
    return f"note: {those} of the dump could not be used, and therefore did not count"


def report_misspelt(skipped: Mapping[str, int]) -> None:
    """Say which kinds were passed over that look like others; most are just of no concern here."""
    for name in skipped:
        kind = name.partition(" ")[0]
        meant = get_close_matches(kind, codec.KINDS, n=1, cutoff=MISSPELT)
        if meant and kind not in codec.KINDS:
            told = f"passed over: {printable(name)}; did you mean {meant[0]}?"
            notices().print(told, style="yellow")


def _load_with_progress(source: str) -> Loaded:
    console = notices()
    if not console.is_terminal:
        return load(source)
    with console.status("Loading") as status:

        def tell(name: str, count: int) -> None:
            status.update(f"Loading {printable(name)}: {count:,} objects")

        progress: Progress = tell
        return load(source, progress=progress)


def _max_volumes(written: str) -> int | None:
    if not written:
        return None
    if not (written.isascii() and written.isdecimal()) or len(written) > 9 or int(written) == 0:
        raise BadInput(f"{MAX_VOLUMES}={printable(written[:40])}: not a positive whole number")
    return int(written)
