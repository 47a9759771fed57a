"""What is set over a cluster file on the command line: `nodeGroups[workers].max=20`.

A path goes through fields, and through lists by index or by the `name` of what stands there. What
is set is YAML. Whether the cluster file still makes sense is found out by reading it again; here it
is only found out where the path leads.
"""

from __future__ import annotations

import copy
import re

import yaml

from bayplan.base.suggestions import no_such
from bayplan.base.yaml_values import YamlError, build

_STEP = re.compile(r"(?:^|\.)([A-Za-z_][\w-]*)|\[([^\[\]]+)\]")
_LONGEST = 200


class OverrideError(ValueError):
    """Something that cannot be set: where, and why."""


def overridden(cluster: dict[str, object], settings: tuple[str, ...]) -> dict[str, object]:
    """A cluster file with these settings over it; OverrideError if one leads nowhere."""
    made = copy.deepcopy(cluster)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals:
            raise OverrideError(f"{setting[:_LONGEST]!r}: write it as path=value")
        _set(made, path.strip(), _value(text, path))
    return made


def _value(text: str, path: str) -> object:
    try:
        return build(yaml.parse(text, Loader=yaml.CSafeLoader))
    except (YamlError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())[:_LONGEST]
        raise OverrideError(f"{path[:_LONGEST]}: not YAML: {said}") from None


def _steps(path: str) -> list[str]:
    found, end = [], 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        found.append(match[0].removeprefix("."))
        end = match.end()
    if not found or end != len(path):
        raise OverrideError(f"{path[:_LONGEST]!r} is no path such as nodeGroups[workers].max")
    return found


def _set(cluster: dict[str, object], path: str, value: object) -> None:
    place: object = cluster
    steps = _steps(path)
    for number, step in enumerate(steps):
        so_far = ".".join(steps[: number + 1]).replace(".[", "[")
        following = steps[number + 1] if number + 1 < len(steps) else None
        if isinstance(place, list) and step.startswith("["):
            index = _index(place, step[1:-1], so_far)
            if following is None:
                place[index] = value
            else:
                place = place[index]
        elif isinstance(place, dict) and not step.startswith("["):
            if following is None:
                place[step] = value
            else:
                place = place.setdefault(step, [] if following.startswith("[") else {})
        else:
            kind = "list" if step.startswith("[") else "section with fields"
            raise OverrideError(f"{so_far[:_LONGEST]}: there is no {kind} there")


def _index(place: list[object], said: str, so_far: str) -> int:
    names = [one.get("name") if isinstance(one, dict) else None for one in place]
    if said in names:
        return names.index(said)
    if said.isdecimal() and int(said) < len(place):
        return int(said)
    known = [str(name) for name in names if name is not None]
    raise OverrideError(f"{so_far[:_LONGEST]}: {no_such('entry', said[:80], known)}")
