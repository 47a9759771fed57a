"""The chart as Helm renders it, as far as it uses Helm: `if`, `range`, and five functions.

Helm itself is nothing that a test can install; the chart's own words are so few that they can be
read here by what Go says of templates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml

import bayplan
from bayplan.deploy.artifacts import CHART
from bayplan.deploy.values import merge_values
from bench.scheduler_perf.gotemplate import Template
from tests.deploy.manifests import DEPLOY

FOLDER = DEPLOY / CHART


def rendered(namespace: str = "kube-system", **said: Any) -> list[Mapping[str, Any]]:
    """What `helm template` gives with these values over the chart's own."""
    usual = yaml.safe_load((FOLDER / "values.yaml").read_text())
    given = {
        "Values": merge_values(usual, said),
        "Release": {"Namespace": namespace},
        "Chart": {"AppVersion": bayplan.__version__},
        "Files": {"Get": lambda name: (FOLDER / name).read_text()},
    }
    words: dict[str, Callable[..., Any]] = {
        "toYaml": _yaml,
        "nindent": _nindent,
        "quote": lambda text: json.dumps(str(text), ensure_ascii=False),
    }
    found = []
    for path in sorted((FOLDER / "templates").iterdir()):
        text = Template(path.read_text(), words).render(given)
        found += [one for one in yaml.safe_load_all(text) if one is not None]
    return found


def _yaml(value: Any) -> str:
    return str(yaml.safe_dump(value)).rstrip("\n")


def _nindent(width: int, text: str) -> str:
    pad = " " * width
    return "\n" + "\n".join(pad + line for line in text.split("\n"))
