"""`bayplan manifests`: everything that runs Bayplan in a cluster, as YAML."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from cyclopts import CycloptsError, Parameter

import bayplan
from bayplan.autoscaler.expanders import ExpanderError, parse_expanders
from bayplan.base.configfiles import FieldProblem
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.main import build_app
from bayplan.cli.options.cluster import Gates, gates_from
from bayplan.cli.text.output import printable
from bayplan.deploy.chosen import components_of, image_of, read_values
from bayplan.deploy.components import DAEMONS
from bayplan.deploy.holes import Filling, Node
from bayplan.deploy.rendering import objects, plain, without_helm
from bayplan.deploy.sense import refuse_clashes
from bayplan.deploy.values import Values, find
from bayplan.deploy.writing import write
from bayplan.kube.names import is_dns_label, is_label_value


def manifests(  # noqa: PLR0913 - one for each option of the command
    *components: str,
    version: str = bayplan.__version__,
    image: str = "",
    namespace: Annotated[str, Parameter(("--namespace", "-n"))] = "kube-system",
    crds: bool = True,
    feature_gates: Gates = "",
    values: Annotated[Path | None, Parameter(("--values", "--filename", "-f"))] = None,
    set_: Annotated[tuple[str, ...], Parameter("--set")] = (),
    output: Annotated[Literal["yaml", "json"], Parameter(("--output", "-o"))] = "yaml",
) -> int:
    """Print the objects that run Bayplan in a cluster, for kubectl apply -f -.

    Nothing is asked of a cluster. The Kustomize base and the Helm chart are made from the same
    source, and the values are the same as the chart's.

    Parameters
    ----------
    components
        What to print: crds, scheduler, autoscaler, autoscaler-clusterapi, webhook, node-limits,
        node-agent, reader, monitoring, network-policies. Without any, what the values enable.
    version
        The version that is to run: the image's tag, and a label of everything.
    image
        The image, with or without a tag or digest.
    namespace
        Where it is to run.
    crds
        Print the definitions of custom kinds, where no components are named.
    values
        A file of values, as the chart takes it.
    set_
        A value, such as scheduler.replicas=3; may be repeated, and counts before the file.
    """
    chosen = read_values(values, set_)
    if feature_gates:
        gates_from(feature_gates)
        chosen.feature_gates = feature_gates
    if not is_label_value(version) or not version:
        raise BadInput(f"--version {printable(version[:80])}: cannot be a label and a tag")
    if not is_dns_label(namespace):
        raise BadInput(f"--namespace {printable(namespace[:80])}: cannot be a name")
    chosen.image = image_of(image, chosen.image, version)
    names = components_of(components, chosen, crds=crds)
    made = objects(Filling(without_helm(chosen), namespace, version), names)
    _refuse_what_cannot_start(chosen, plain(made) if version == bayplan.__version__ else ())
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": plain(made)}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(listed)).decode() + "\n")
    else:
        sys.stdout.write(write(made))
    return EXIT_OK


def _refuse_what_cannot_start(values: Values, made: Iterable[Node]) -> None:
    """BadInput for words that a daemon of our version would only refuse once it runs."""
    try:
        parse_expanders(values.autoscaler.expander)
        refuse_clashes(values)
    except ExpanderError as error:
        raise BadInput(f"autoscaler.expander: {printable(str(error))}") from None
    except FieldProblem as problem:
        raise BadInput(printable(str(problem))) from None
    sections = {one.name: one.values for one in DAEMONS}
    for one in cast("Iterable[dict[str, Any]]", made):
        if one["kind"] in {"Deployment", "DaemonSet"}:
            (container,) = one["spec"]["template"]["spec"]["containers"]
            section = sections[one["metadata"]["name"]]
            if find(values, f"{section}.extraArgs"):
                _refuse_arguments(container, section)


def _refuse_arguments(container: dict[str, Any], section: str) -> None:
    """All that we say ourselves is sound, so what is wrong is what somebody adds."""
    words = [*container["command"][1:], *container["args"]]
    try:
        build_app(words[0]).parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as problem:
        said = printable(" ".join(str(problem).split()))
        raise BadInput(f"{section}.extraArgs: {said}") from None
