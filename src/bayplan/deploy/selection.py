"""What `bayplan manifests` renders: values from a file and --set, components, and the image."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import yaml

from bayplan.base.configfiles import ConfigFileError, FieldProblem, parse, read_text
from bayplan.base.errors import InputError
from bayplan.base.suggestions import suggestion
from bayplan.base.yaml_values import YamlError, build
from bayplan.deploy.components import BY_NAME, COMPONENTS
from bayplan.deploy.templates import RenderContext
from bayplan.deploy.validation import validate_values
from bayplan.deploy.values import REPOSITORY, Values
from bayplan.kube.imagereferences import InvalidReferenceError, parse_image

_DOT = re.compile(r"(?<!\\)\.")


def read_values(path: Path | None, settings: tuple[str, ...]) -> Values:
    """Return the values of a file with settings over it; InputError if they are invalid."""
    try:
        text = b"" if path is None else read_text(path)
        file = parse(text, "--set" if path is None else str(path), dict[str, object])
        for one in settings:
            _set(file.value, one)
        return validate_values(file.value)
    except ConfigFileError as error:
        raise InputError(str(error)) from None
    except FieldProblem as problem:
        if path is None or any(_is_within(problem.field, one) for one in settings):
            raise InputError(f"--set {problem}") from None
        raise InputError(str(file.error(problem))) from None


def _is_within(field: str, setting: str) -> bool:
    """Return whether a field is the one that a setting names, or is inside it."""
    name = setting.partition("=")[0].replace("\\.", ".")
    return field == name or field.startswith((f"{name}.", f"{name}["))


def _set(values: dict[str, object], setting: str) -> None:
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise InputError(f"--set {setting[:80]}: must be NAME=VALUE")
    try:
        # An empty value is an empty string, as in Helm.
        value = build(yaml.parse(text, Loader=yaml.CSafeLoader)) if text else ""
    except (YamlError, yaml.YAMLError, UnicodeError):
        raise InputError(
            f"--set {setting[:80]}: the value is not valid YAML; quote it if it is a string"
        ) from None
    *above, last = (one.replace("\\.", ".") for one in _DOT.split(name))
    at = values
    for step in above:
        inner = at.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {setting[:80]}: {step} is not an object")
        at = inner
    at[last] = value


def image_of(option: str, value: str, version: str) -> str:
    """Return the image with a tag or digest; the option takes precedence over the value."""
    is_default = value == Values().image
    image = option or (REPOSITORY if is_default else value)
    try:
        found = parse_image(image)
    except InvalidReferenceError as error:
        where = "--image" if option else "image"
        raise InputError(f"{where}: {error}") from None
    return image if found.tag or found.digest else f"{image}:{version}"


def components_of(components: tuple[str, ...], values: Values, *, crds: bool) -> list[str]:
    """Return the names of the components to render, in the order in which they are applied."""
    context = RenderContext(values, "", "")
    for name in components:
        if name not in BY_NAME:
            meant = suggestion(name, BY_NAME)
            raise InputError(f"{name[:80]}: unknown component{meant}")
        _put(values, BY_NAME[name].switch.split("."), True)
    if components:
        return [one.name for one in COMPONENTS if one.name in components]
    values.crds.enabled = values.crds.enabled and crds
    return [one.name for one in COMPONENTS if context.is_set(one.switch)]


def _put(values: msgspec.Struct, path: list[str], value: object) -> None:
    fields = {one.encode_name: one.name for one in msgspec.structs.fields(values)}
    if len(path) == 1:
        setattr(values, fields[path[0]], value)
    else:
        _put(getattr(values, fields[path[0]]), path[1:], value)
