"""Volumes made of the cluster's own objects: secrets, config maps, the pod itself, tokens."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required
from bayplan.embedded.apiserver.validation.paths import local_path_problems
from bayplan.embedded.apiserver.validation.pods.choices import MODE, needed
from bayplan.embedded.apiserver.validation.pods.environment import (
    FIELDS_OF_FILES,
    field_problems,
    resource_field_problems,
)

_LEAST_SECONDS = 10 * 60
_MOST_SECONDS = 2**32


def _mode_problems(source: JsonObject, name: str, at: str) -> list[Cause]:
    mode = source.get(name)
    return [] if mode is None or 0 <= mode <= 0o777 else [bad_value(f"{at}.{name}", mode, MODE)]


def _item_problems(source: JsonObject, at: str) -> list[Cause]:
    found: list[Cause] = []
    for index, item in enumerate(source.get("items") or ()):
        place = f"{at}.items[{index}]"
        found += needed("key", "path")(item, place)
        found += local_path_problems(item.get("path") or "", f"{place}.path")
        found += _mode_problems(item, "mode", place)
    return found


def secret_problems(source: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a volume made of a secret."""
    found = needed("secretName")(source, at)
    return found + _mode_problems(source, "defaultMode", at) + _item_problems(source, at)


def config_problems(source: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a volume made of a config map."""
    found = needed("name")(source, at)
    return found + _mode_problems(source, "defaultMode", at) + _item_problems(source, at)


def downward_problems(source: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a volume that tells the pod about itself."""
    found = _mode_problems(source, "defaultMode", at)
    for file in source.get("items") or ():
        found += _file_problems(file, at)
    return found


def _file_problems(file: JsonObject, at: str) -> list[Cause]:
    found = needed("path")(file, at)
    found += local_path_problems(file.get("path") or "", f"{at}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        found += field_problems(field, f"{at}.fieldRef", FIELDS_OF_FILES)
        if resource is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(bad_value(at, "resource", why))
    elif resource is not None:
        found += resource_field_problems(resource, f"{at}.resourceFieldRef", named=True)
    else:
        found.append(required(at, "one of fieldRef and resourceFieldRef is required"))
    return found + _mode_problems(file, "mode", at)


def projected_problems(source: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a volume made of several objects."""
    found = _mode_problems(source, "defaultMode", at)
    paths: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        place, kinds = f"{at}.sources[{index}]", 0
        for kind in ("secret", "configMap", "downwardAPI", "serviceAccountToken"):
            if one.get(kind) is not None:
                kinds += 1
                found += _projection_problems(kind, one[kind], at, f"{place}.{kind}", paths)
        if kinds > 1:
            why = "may not specify more than 1 volume type per source"
            found.append(forbidden_field(place, why))
    return found


def _projection_problems(
    kind: str, source: JsonObject, at: str, place: str, paths: set[str]
) -> list[Cause]:
    if kind == "serviceAccountToken":
        return _token_problems(source, at, place)
    items = source.get("items") or []
    if kind == "downwardAPI":
        found = [cause for file in items for cause in _file_problems(file, place)]
        return found + _clash_problems(items, None, at, paths)
    found = needed("name")(source, place) + _item_problems(source, place)
    return found + _clash_problems(items, source.get("name") or "", at, paths)


def _clash_problems(
    items: list[JsonObject], name: str | None, at: str, paths: set[str]
) -> list[Cause]:
    found = []
    for item in items:
        path = item.get("path")
        if path in paths:
            shown = path if name is None else name
            found.append(bad_value(at, shown, "conflicting duplicate paths"))
        elif path:
            paths.add(path)
    return found


def _token_problems(source: JsonObject, at: str, place: str) -> list[Cause]:
    found, seconds = [], source.get("expirationSeconds") or 0
    if seconds < _LEAST_SECONDS:
        why = "may not specify a duration less than 10 minutes"
        found.append(bad_value(f"{place}.expirationSeconds", seconds, why))
    if seconds > _MOST_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
        found.append(bad_value(f"{place}.expirationSeconds", seconds, why))
    path = source.get("path") or ""
    if not path:
        return [*found, required(f"{at}.path")]
    return found + local_path_problems(path, f"{at}.path")


def token_account_problems(spec: JsonObject, at: str) -> list[Cause]:
    """A token is somebody's: a pod that has one names its account."""
    if spec.get("serviceAccountName"):
        return []
    return [
        forbidden_field(
            f"{at}.volumes[{index}].projected.sources[{number}].serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for index, volume in enumerate(spec.get("volumes") or ())
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]
