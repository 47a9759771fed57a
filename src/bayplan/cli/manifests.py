"""`bayplan manifests`: the objects that run Bayplan in a cluster, as YAML or JSON."""

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
from bayplan.deploy.artifacts import plain_objects, render_objects, without_helm
from bayplan.deploy.components import DAEMONS
from bayplan.deploy.selection import components_of, image_of, read_values
from bayplan.deploy.templates import RenderContext, TemplateNode
from bayplan.deploy.validation import refuse_conflicts
from bayplan.deploy.values import Values, find_value
from bayplan.deploy.yaml_writer import write_yaml
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

    It does not connect to a cluster. The Kustomize base and the Helm chart are generated from the
    same source, and the values are the chart's.

    Parameters
    ----------
    components
        The components to print: crds, scheduler, autoscaler, autoscaler-clusterapi, webhook,
        node-limits, node-agent, reader, monitoring, network-policies. By default those that the
        values enable.
    version
        The version to run: the image's tag, and a label of all objects.
    image
        The image, with or without a tag or digest.
    namespace
        The namespace of the objects.
    crds
        Print the custom resource definitions, if no components are given.
    values
        A file of values, in the chart's format.
    set_
        A value, such as scheduler.replicas=3; may be repeated, and overrides the file.
    """
    chosen = read_values(values, set_)
    if feature_gates:
        gates_from(feature_gates)
        chosen.feature_gates = feature_gates
    if not is_label_value(version) or not version:
        raise BadInput(f"--version {printable(version[:80])}: not a valid label value and tag")
    if not is_dns_label(namespace):
        raise BadInput(f"--namespace {printable(namespace[:80])}: not a valid namespace name")
    chosen.image = image_of(image, chosen.image, version)
    names = components_of(components, chosen, crds=crds)
    made = render_objects(RenderContext(without_helm(chosen), namespace, version), names)
    _refuse_what_cannot_start(chosen, plain_objects(made) if version == bayplan.__version__ else ())
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": plain_objects(made)}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(listed)).decode() + "\n")
    else:
        sys.stdout.write(write_yaml(made))
    return EXIT_OK


def _refuse_what_cannot_start(values: Values, made: Iterable[TemplateNode]) -> None:
    """Raise BadInput for arguments that a daemon of this version would refuse at its start."""
    try:
        parse_expanders(values.autoscaler.expander)
        refuse_conflicts(values)
    except ExpanderError as error:
        raise BadInput(f"autoscaler.expander: {printable(str(error))}") from None
    except FieldProblem as problem:
        raise BadInput(printable(str(problem))) from None
    sections = {one.name: one.values for one in DAEMONS}
    for one in cast("Iterable[dict[str, Any]]", made):
        if one["kind"] in {"Deployment", "DaemonSet"}:
            (container,) = one["spec"]["template"]["spec"]["containers"]
            section = sections[one["metadata"]["name"]]
            if find_value(values, f"{section}.extraArgs"):
                _refuse_arguments(container, section)


def _refuse_arguments(container: dict[str, Any], section: str) -> None:
    """Raise BadInput if the arguments cannot be parsed; only extraArgs can be wrong."""
    words = [*container["command"][1:], *container["args"]]
    try:
        build_app(words[0]).parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as problem:
        message = printable(" ".join(str(problem).split()))
        raise BadInput(f"{section}.extraArgs: {message}") from None
