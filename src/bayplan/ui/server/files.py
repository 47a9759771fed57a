"""The static files of the page, read once; no other path is served."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bayplan.ui.encoder import gzipped
from bayplan.ui.server.headers import FOR_EVER

STATIC = Path(__file__).parent.parent / "static"
INDEX = "index.html"
NOT_BUILT = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Bayplan</title>
<p>The page has not been built; its data is at <a href="api/state">api/state</a>.</p></html>
"""
_HASHED = re.compile(r"[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
"""A name with a hash of the content, which can be cached forever."""
_TEXTUAL = ("text/", "application/json", "image/svg+xml")
_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain",
    ".ico": "image/x-icon",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A static file."""

    plain: bytes
    gzipped: bytes | None
    type: str
    cached: str = ""
    """The Cache-Control header; empty for none."""


def read_files(folder: Path = STATIC) -> Mapping[str, StaticFile]:
    """Return every file of the page by path."""
    found = {
        path.relative_to(folder).as_posix(): _file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
    found.setdefault(INDEX, StaticFile(NOT_BUILT, None, "text/html; charset=utf-8"))
    return found


def _file(path: Path) -> StaticFile:
    data, kind = path.read_bytes(), _type(path)
    packed = gzipped(data) if kind.startswith(_TEXTUAL) else None
    return StaticFile(data, packed, kind, FOR_EVER if _HASHED.search(path.name) else "")


def _type(path: Path) -> str:
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    kind = kind or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
