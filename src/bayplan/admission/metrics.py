"""Metrics of the webhook."""

from __future__ import annotations

from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from bayplan.admission.review import ReviewResponse

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class AdmissionMetrics:
    """The metrics of one webhook."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "bayplan_webhook_requests",
            "Requests by path and HTTP status.",
            ["path", "code"],
            registry=registry,
        )
        verdicts = Counter(
            "bayplan_webhook_verdicts",
            "Reviews by path, operation and result: allowed, patched or refused.",
            ["path", "operation", "verdict"],
            registry=registry,
        )
        seconds = Histogram(
            "bayplan_webhook_request_duration_seconds",
            "The duration of requests.",
            ["path"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.expiry = Gauge(
            "bayplan_webhook_certificate_expiry_seconds",
            "When the serving certificate expires, in seconds since 1970.",
            registry=registry,
        )
        self._requests = lru_cache(256)(requests.labels)
        self._verdicts = lru_cache(256)(verdicts.labels)
        self._seconds = lru_cache(64)(seconds.labels)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count an HTTP request and its duration."""
        self._requests(path, str(status)).inc()
        self._seconds(path).observe(seconds)

    def judged(self, path: str, operation: str, response: ReviewResponse) -> None:
        """Count a review by its result."""
        allowed = "patched" if response.patch else "allowed"
        self._verdicts(path, operation, allowed if response.allowed else "refused").inc()
