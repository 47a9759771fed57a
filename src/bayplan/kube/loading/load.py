"""The load itself: each source by its form."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import BinaryIO

import yaml

from bayplan.base.garbage import paused_collector
from bayplan.base.values import JsonObject
from bayplan.base.yaml_values import YamlError
from bayplan.kube.loading.collector import Collector, Loaded, Progress
from bayplan.kube.loading.json_documents import take_json
from bayplan.kube.loading.sources import LoadError, open_sources
from bayplan.kube.loading.yaml_documents import take_yaml, yaml_documents


def load(
    source: str | Path | bytes,
    *,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    events: bool = False,
) -> Loaded:
    """All objects behind a source, and events where they are asked for; LoadError only if it cannot
    be read at all.
    """
    collector = Collector(progress, events=events)
    with paused_collector():
        for opened in open_sources(source, stdin):
            if isinstance(opened, LoadError):
                collector.source = ""
                collector.report_text(str(opened), "skipped")
            else:
                collector.source = opened.name
                _take(collector, opened.data.removeprefix(codecs.BOM_UTF8))
    return collector.loaded


def plain_documents(source: str) -> list[tuple[str, JsonObject]]:
    """The documents behind a source as plain values, each with its place; LoadError if one of them
    cannot be read as an object.
    """
    found: list[tuple[str, JsonObject]] = []
    for opened in open_sources(source):
        if isinstance(opened, LoadError):
            raise opened
        try:
            documents = yaml_documents(opened.data.removeprefix(codecs.BOM_UTF8))
        except (YamlError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            said = " ".join(str(error).split())[:300]
            raise LoadError(f"{opened.name}: not YAML: {said}") from None
        for line, _, value in documents:
            place = f"{opened.name}: document at line {line + 1}"
            if not isinstance(value, dict):
                raise LoadError(f"{place}: not an object")
            found.append((place, value))
    return found


def _take(collector: Collector, data: bytes) -> None:
    start = data[:4096].lstrip()[:1]
    if start not in {b"{", b"["} or not take_json(collector, data):
        take_yaml(collector, data)
