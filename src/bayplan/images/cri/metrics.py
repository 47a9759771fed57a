"""Metrics of the CRI service: images by handler, pulls, and the store's disk usage.

`bayplan_cri_images` shows whether images per runtime class are used: the series of the default
handler has `default="true"`, all others count the feature's use.
"""

import contextlib
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.images.handlers import RuntimeHandlers
from bayplan.images.store.store import ImageStore

_SECONDS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class _StoreCollector(Collector):
    """Counts at every scrape, so the numbers are never stale."""

    def __init__(self, store: ImageStore, handlers: RuntimeHandlers) -> None:
        self._store = store
        self._handlers = handlers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        images = GaugeMetricFamily(
            "bayplan_cri_images",
            "Images by runtime handler.",
            labels=["runtime_handler", "default"],
        )
        tally = Tally(entry.handler for entry in self._store.catalogue.entries())
        for name in sorted({*self._handlers.names(), *tally}):
            images.add_metric([name, str(name == self._handlers.default).lower()], tally[name])
        yield images
        usage = self._store.usage()
        yield GaugeMetricFamily("bayplan_cri_image_store_bytes", "Bytes on the disk.", usage.bytes)
        yield GaugeMetricFamily("bayplan_cri_image_store_inodes", "Inodes used.", usage.inodes)


class CriMetrics:
    """The metrics of a CRI service, in a registry of its own."""

    def __init__(
        self,
        store: ImageStore,
        handlers: RuntimeHandlers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_StoreCollector(store, handlers))
        self._clock = clock
        self._pulls = Counter(
            "bayplan_cri_image_pulls",
            "Pulls by runtime handler and result.",
            ["runtime_handler", "result"],
            registry=self.registry,
        )
        self._in_flight = Gauge(
            "bayplan_cri_image_pulls_in_flight",
            "Pulls in flight, including their clean-up.",
            registry=self.registry,
        )
        self._seconds = Histogram(
            "bayplan_cri_image_pull_duration_seconds",
            "Duration of successful pulls.",
            ["runtime_handler"],
            buckets=_SECONDS,
            registry=self.registry,
        )

    @contextlib.contextmanager
    def pull(self, handler: str) -> Iterator[None]:
        """Count a pull and time it."""
        started, result = self._clock(), "failed"
        self._in_flight.inc()
        try:
            yield
            result = "pulled"
            self._seconds.labels(handler).observe(self._clock() - started)
        finally:
            self._in_flight.dec()
            self._pulls.labels(handler, result).inc()
