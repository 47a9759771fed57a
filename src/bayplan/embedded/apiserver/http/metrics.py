"""What the server counts about itself, in Prometheus' form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bayplan.embedded.apiserver.store.store import Store

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_REQUEST_LABELS = ("verb", "group", "resource", "subresource", "code")
RequestKey = tuple[str, str, str, str, int]


class Metrics:
    """Counters that cost a request next to nothing; the library is loaded when they are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests: dict[RequestKey, int] = defaultdict(int)
        self._seconds: dict[RequestKey, float] = defaultdict(float)
        self.in_flight = 0

    def count(self, key: RequestKey, seconds: float) -> None:
        """Note an answered request."""
        self._requests[key] += 1
        self._seconds[key] += seconds

    def collect(self) -> Iterator[Metric]:
        """The metrics, for a registry."""
        from prometheus_client.core import (  # noqa: PLC0415 - slow to import, rarely needed
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        requests = CounterMetricFamily(
            "apiserver_request", "Requests answered.", labels=_REQUEST_LABELS
        )
        seconds = CounterMetricFamily(
            "apiserver_request_seconds", "Time spent on requests.", labels=_REQUEST_LABELS
        )
        for key, number in self._requests.items():
            labels = [str(part) for part in key]
            requests.add_metric(labels, number)
            seconds.add_metric(labels, self._seconds[key])
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored.", labels=("resource",)
        )
        for storage, number in self._store.counts().items():
            objects.add_metric([storage], number)
        in_flight = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests being answered.", self.in_flight
        )
        revision = GaugeMetricFamily(
            "apiserver_storage_revision", "The newest resource version.", self._store.revision
        )
        yield from (requests, seconds, objects, in_flight, revision)

    def text(self) -> bytes:
        """The metrics as a scraper reads them."""
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)
