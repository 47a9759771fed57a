"""Everything that is printed or checked in: plain objects, Kustomize's folders, Helm's chart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bayplan.deploy.components import BY_NAME, COMPONENTS, Component
from bayplan.deploy.dashboard import dashboard_text
from bayplan.deploy.holes import Filling, Node, Remark, Text, When, bare, fill_all
from bayplan.deploy.sense import schema
from bayplan.deploy.values import OURS, WHY, Values
from bayplan.deploy.words import Strict, is_section
from bayplan.deploy.writing import write

USUAL = tuple(one.name for one in COMPONENTS if one.usual)
CHART = "helm/bayplan"
KUSTOMIZE = "kustomize"
_MADE = "# Made by `make manifests` from src/bayplan/deploy; changes here are lost.\n"
_KINDS = "kustomize.config.k8s.io"


def objects(by: Filling, names: Sequence[str] = USUAL) -> list[Node]:
    """The objects of some parts, filled, with their comments."""
    return [one for name in names for one in fill_all(BY_NAME[name].objects(), by)]


def plain(made: Iterable[Node]) -> list[Node]:
    """The same as the API takes them."""
    return [bare(one) for one in made]


def without_helm(values: Values) -> Values:
    """What Helm alone understands is left out."""
    return msgspec.structs.replace(values, crds=msgspec.structs.replace(values.crds, keep=False))


def files(version: str = OURS) -> dict[str, str]:
    """All files of the folder deploy/, by path."""
    return {**_chart(version), **_kustomize(version), "grafana/bayplan.json": dashboard_text()}


def _chart(version: str) -> dict[str, str]:
    head: Node = {
        "apiVersion": "v2",
        "name": "bayplan",
        "description": "A scheduler, autoscaler and queue admission that agree on what fits.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    }
    made = {f"templates/{one.name}.yaml": _template(one) for one in COMPONENTS}
    return {
        f"{CHART}/Chart.yaml": f"{_MADE}{write([head])[4:]}",
        f"{CHART}/values.yaml": f"{_MADE}{''.join(_documented(Values(), ''))}",
        f"{CHART}/values.schema.json": f"{json.dumps(schema(), indent=2)}\n",
        f"{CHART}/dashboard.json": dashboard_text(),
        **{f"{CHART}/{path}": text for path, text in made.items()},
    }


def _template(component: Component) -> str:
    body = write(_escaped(one) for one in component.objects())
    return f"{_MADE}{{{{- if .Values.{component.switch} }}}}\n{body}{{{{- end }}}}\n"


def _escaped(node: Node) -> Node:
    """The same where texts that have braces of their own are nothing that Helm reads."""
    match node:
        case dict():
            return {key: _escaped(one) for key, one in node.items()}
        case list():
            return [_escaped(one) for one in node]
        case When(path, then) if then is not None:
            return When(path, _escaped(then))
        case Remark(text, inner):
            return Remark(text, _escaped(inner))
        case str() if "{{" in node:
            return Text(node)
        case _:
            return node


def _documented(values: Strict, above: str) -> Iterator[str]:
    """values.yaml: every field, its usual value, and what is to be said of it."""
    pad = "  " * above.count(".")
    for one in msgspec.structs.fields(values):
        path = f"{above}{one.encode_name}"
        held = getattr(values, one.name)
        if path in WHY:
            yield f"{pad}# {WHY[path]}\n"
        if is_section(held):
            yield f"{pad}{one.encode_name}:\n"
            yield from _documented(held, f"{path}.")
        else:
            lines = write([{one.encode_name: msgspec.to_builtins(held)}])[4:].splitlines()
            yield from (f"{pad}{line}\n" for line in lines)


def _kustomize(version: str) -> dict[str, str]:
    usual = without_helm(Values())
    # What is watched or shut off is all that may be there.
    usual.node_limits.enabled = usual.node_agent.enabled = True
    by = Filling(usual, "kube-system", version)
    made: dict[str, str] = {}
    for one in COMPONENTS:
        folder = f"{KUSTOMIZE}/{'base' if one.usual else f'components/{one.name}'}"
        made[f"{folder}/{one.name}.yaml"] = f"{_MADE}{write(objects(by, [one.name]))}"
        if not one.usual:
            listed: dict[str, Node] = {"resources": [f"{one.name}.yaml"]}
            made[f"{folder}/kustomization.yaml"] = _listing("v1alpha1", "Component", listed)
    names: dict[str, Node] = {"resources": [f"{name}.yaml" for name in USUAL]}
    made[f"{KUSTOMIZE}/base/kustomization.yaml"] = _listing("v1beta1", "Kustomization", names)
    return made


def _listing(version: str, kind: str, what: dict[str, Node]) -> str:
    head: dict[str, Node] = {"apiVersion": f"{_KINDS}/{version}", "kind": kind}
    return f"{_MADE}{write([{**head, **what}])[4:]}"
