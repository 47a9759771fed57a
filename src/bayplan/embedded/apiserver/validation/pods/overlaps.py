"""Files of one volume whose paths are in each other's way."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import quoted

_OVER = "overlapping paths"
_COMPARED = 256
"""Files of a volume that are compared with each other: it is advice, and each costs all others."""


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quoted(self.path)} ({self.source})" if self.source else quoted(self.path)


def overlap_warnings(volumes: list[JsonObject]) -> list[str]:
    """What to tell of volumes that put one file over another."""
    found: list[str] = []
    for volume in volumes:
        name = quoted(volume.get("name") or "")
        for kind, what in _described(volume).items():
            files = _files(volume[kind], "")
            found += [
                f"volume {name} ({what}): overlapping paths: {one}" for one in _clashes(files)
            ]
        if volume.get("projected") is not None:
            found += _projected(volume["projected"].get("sources") or [], name)
    return found


def _described(volume: JsonObject) -> dict[str, str]:
    """What of a volume is made of files by name, and how it is called."""
    found = {}
    if (source := volume.get("configMap")) is not None:
        found["configMap"] = f"ConfigMap {quoted(source.get('name') or '')}"
    if (source := volume.get("secret")) is not None:
        found["secret"] = f"Secret {quoted(source.get('secretName') or source.get('name') or '')}"
    return found | {"downwardAPI": "DownwardAPI"} if volume.get("downwardAPI") else found


def _files(source: JsonObject, what: str) -> list[_File]:
    return [_File(item.get("path") or "", what) for item in source.get("items") or ()]


def _projected(sources: list[JsonObject], name: str) -> list[str]:
    files: list[_File] = []
    found = []
    for source in sources:
        if not source:
            found.append(f"volume {name} (Projected) has no sources provided")
            continue
        kinds = _described(source)
        listed = next((kind for kind in kinds if source[kind].get("items")), "")
        if listed:
            files += _files(source[listed], kinds[listed])
        elif source.get("serviceAccountToken") is not None:
            path = source["serviceAccountToken"].get("path") or ""
            files.append(_File(path, "ServiceAccountToken"))
    clashes = _clashes(files)
    return found + [f"volume {name} (Projected): {_OVER}: {one}" for one in clashes]


def _clashes(files: list[_File]) -> list[str]:
    seen: list[_File] = []
    found = []
    for file in files[:_COMPARED]:
        one = file._replace(path=file.path.rstrip("/"))
        found += [f"{one} with {other}" for other in seen if _overlap(one, other)]
        seen.append(one)
    return found


def _overlap(one: _File, other: _File) -> bool:
    if not one.path or not other.path:
        return False
    inner, outer = f"{one.path}/", f"{other.path}/"
    return inner.startswith(outer) or outer.startswith(inner)
