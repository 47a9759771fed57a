"""What of an answer is compared: the parts that do not change from one run to the next.

Ids, UIDs, resource versions, times near now, made names, addresses and ages have stand-ins, on
both sides of the comparison.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle.sessions import Memory, Raw

_UID = re.compile(r"(?!00000000)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_AGE = re.compile(r"^(\d+[smhdy]){1,4}$")
_AGO = re.compile(r"\((\d+[smhdy]){1,4} ago\)")
_MADE = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_NEAR = timedelta(days=3)
_MOST_TEXT = 3000
_IN_TEXT = [
    (re.compile(r"(ResourceVersion in object meta: )\d+"), r"\1<rv>"),
    (re.compile(r"(ResourceVersion in (?:record|the precondition) \()\d+"), r"\1<rv>"),
    (re.compile(r"(patch: Invalid value: )\"\{.*\}\": ", re.DOTALL), r"\1<object>: "),
    (re.compile(r"(resourceVersion\\*\"?: ?\\*\")\d+"), r"\1<rv>"),
    (re.compile(r"(current: )\d+"), r"\1<rv>"),
    (re.compile(r"(UID in object meta: )[^\s,]+"), r"\1<uid>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<ptr>"),
    (re.compile(r"(StorageError: [^/]*Key: )/[^,]+"), r"\1<key>"),
]
_DETAILS = ("name", "group", "kind", "retryAfterSeconds")


def normalized(raw: Raw, memory: Memory, *, watch: bool) -> dict[str, Any]:
    """An answer in the form in which answers are recorded."""
    answer: dict[str, Any] = {"status": raw.status, "headers": _headers(raw, memory)}
    text = raw.body.decode("utf-8", "replace").replace(memory.id, "{{id}}")
    _note_made(raw.document(), memory)
    if watch:
        events = [_event(line, memory) for line in text.split("\n") if line.strip()]
        refused = len(events) == 1 and isinstance(events[0], dict) and "kind" in events[0]
        if not refused:
            return answer | {"object": events}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return answer | ({"text": _text(text, memory)[:_MOST_TEXT]} if text else {})
    if _is_failure(document):
        return answer | _failure(document, memory)
    return answer | {"object": _value(document, memory)} | _owners(document)


def _headers(raw: Raw, memory: Memory) -> dict[str, Any]:
    kinds = [value.split(";")[0] for name, value in raw.headers if name == "content-type"]
    warnings = [value for name, value in raw.headers if name == "warning"]
    return {
        "content-type": kinds[0] if kinds else "",
        "retry-after": any(name == "retry-after" for name, _ in raw.headers),
        "warning": sorted(_text(text.replace(memory.id, "{{id}}"), memory) for text in warnings),
    }


def _event(line: str, memory: Memory) -> Any:
    try:
        return _value(json.loads(line), memory)
    except ValueError:
        return line[:200]


def _is_failure(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and (document.get("kind"), document.get("apiVersion")) == ("Status", "v1")
        and document.get("status") != "Success"
    )


def _failure(status: Any, memory: Memory) -> dict[str, Any]:
    details = status.get("details") or {}
    causes = {
        (_text(str(cause.get("field", "")), memory), cause.get("reason", ""))
        for cause in details.get("causes") or ()
    }
    kept = {key: value for key, value in details.items() if key in _DETAILS}
    return {
        "reason": status.get("reason", ""),
        "causes": [list(cause) for cause in sorted(causes)],
        "message": _text(status.get("message", ""), memory),
        "details": _value(kept, memory),
    }


def _owners(document: Any) -> dict[str, Any]:
    """Who owns which fields, as `managedFields` says."""
    meta = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return {}
    owners = [
        [
            *(entry.get(key, "") for key in ("manager", "operation", "subresource", "apiVersion")),
            [_UID.sub("<uid>", path) for path in _paths(entry.get("fieldsV1") or {})],
        ]
        for entry in meta["managedFields"]
    ]
    return {"owners": sorted(owners, key=json.dumps)}


def _paths(fields: dict[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, inner in sorted(fields.items()):
        here = f"{prefix}/{key}"
        found += _paths(inner, here) if inner and key != "." else [here]
    return found


def _note_made(document: Any, memory: Memory) -> None:
    """Remember names that the server made from `generateName`."""
    if not isinstance(document, dict):
        return
    meta = document.get("metadata")
    if isinstance(meta, dict) and meta.get("generateName") and isinstance(meta.get("name"), str):
        name = meta["name"].replace(memory.id, "{{id}}")
        prefix = meta["generateName"].replace(memory.id, "{{id}}")
        if re.fullmatch(_MADE, name[-5:]) and prefix.startswith(name[:-5][:58]):
            memory.made.setdefault(name, f"{name[:-5]}<gen>")
    for item in document.get("items") or ():
        _note_made(item, memory)


def _text(text: str, memory: Memory) -> str:
    for name, stand_in in memory.made.items():
        text = text.replace(name, stand_in)
    for prefix in memory.prefixes:
        made = rf"(?<![A-Za-z0-9_.-]){re.escape(prefix)}{_MADE}(?![A-Za-z0-9])"
        text = re.sub(made, prefix.replace("\\", "\\\\") + "<gen>", text)
    if text.isalpha():  # as most keys are: all that has a stand-in has a digit or a sign in it
        return text
    text = _UID.sub("<uid>", _TIME.sub(_moment, text))
    for pattern, stand_in in _IN_TEXT:
        text = pattern.sub(stand_in, text)
    return text


def _moment(match: re.Match[str]) -> str:
    try:
        said = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        return match[0]
    if abs(said - datetime.now(UTC)) > _NEAR:
        return match[0]
    return f"<time{len(match[2]) - 1 if match[2] else ''}>"


def _value(value: Any, memory: Memory, path: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        in_meta = path[-1:] == ("metadata",)
        return {
            _text(key, memory): _value(_stand_in(key, item, in_meta), memory, (*path, key))
            for key, item in value.items()
            if not _is_left_out(key, item, in_meta)
        }
    if isinstance(value, list):
        return [_value(item, memory, (*path, "[]")) for item in value]
    if isinstance(value, str):
        text = _text(value, memory)
        if "cells" in path:
            return _AGO.sub("(<age> ago)", "<age>" if _AGE.match(text) else text)
        return text
    return value


def _is_left_out(key: str, item: Any, in_meta: bool) -> bool:
    return (
        (in_meta and key in ("managedFields", "selfLink"))
        or (key == "creationTimestamp" and item is None)
        or (key in ("serviceAccount", "serviceAccountName") and item == "default")
    )


def _stand_in(key: str, item: Any, in_meta: bool) -> Any:
    if key == "resourceVersion" and isinstance(item, str) and item.isdigit():
        return "<rv>"
    if in_meta and key == "continue" and item:
        return "<continue>"
    if key == "clusterIP" and item not in ("", "None"):
        return "<ip>"
    if key == "clusterIPs" and isinstance(item, list):
        return [each if each in ("", "None") else "<ip>" for each in item]
    if key in ("nodePort", "healthCheckNodePort") and item:
        return "<port>"
    return {"serverAddress": "<address>", "storageVersionHash": "<hash>"}.get(key, item)
