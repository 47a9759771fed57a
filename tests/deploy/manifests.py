"""The manifests, as the tests of all packages use them."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

import bayplan
from bayplan.cli.main import run
from bayplan.deploy.artifacts import plain_objects, render_objects, without_helm
from bayplan.deploy.templates import RenderContext
from bayplan.deploy.validation import validate_values
from bayplan.deploy.values import Values

DEPLOY = Path(__file__).parents[2] / "deploy"


def values(**said: object) -> Values:
    """Values, as a file would say them."""
    return validate_values(said)


def made(*names: str, namespace: str = "kube-system", **said: object) -> list[dict[str, Any]]:
    """The objects of some parts."""
    context = RenderContext(without_helm(values(**said)), namespace, bayplan.__version__)
    return plain_objects(render_objects(context, names))  # type: ignore[return-value]


def rules(*names: str) -> list[dict[str, Any]]:
    """What lets some parts do their work: accounts, roles and bindings."""
    kinds = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    return [one for one in made(*names) if one["kind"] in kinds]


def printed(*arguments: str) -> str:
    """What `bayplan manifests` prints."""
    out = StringIO()
    with redirect_stdout(out):
        assert run(["manifests", *arguments]) == 0
    return out.getvalue()


def printed_objects(*arguments: str) -> list[dict[str, Any]]:
    """The same as objects."""
    return list(yaml.safe_load_all(printed(*arguments)))
