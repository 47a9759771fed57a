"""The load itself: each source by its form."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import BinaryIO

from bayplan.kube.loading.collector import Collector, Loaded, Progress
from bayplan.kube.loading.garbage import paused_collector
from bayplan.kube.loading.json_documents import take_json
from bayplan.kube.loading.sources import LoadError, open_sources
from bayplan.kube.loading.yaml_documents import take_yaml


def load(
    source: str | Path | bytes,
    *,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
) -> Loaded:
    """All objects behind a source; LoadError only if it cannot be read at all."""
    collector = Collector(progress)
    with paused_collector():
        for opened in open_sources(source, stdin):
            if isinstance(opened, LoadError):
                collector.source = ""
                collector.report_text(str(opened), "skipped")
            else:
                collector.source = opened.name
                _take(collector, opened.data.removeprefix(codecs.BOM_UTF8))
    return collector.loaded


def _take(collector: Collector, data: bytes) -> None:
    start = data[:4096].lstrip()[:1]
    if start not in {b"{", b"["} or not take_json(collector, data):
        take_yaml(collector, data)
