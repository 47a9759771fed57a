"""Metrics of the image manager: the kubelet's where it has them, and images by handler.

The registry is passed in, so that two managers in one process, or two
tests, do not share metrics.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client import Counter as CounterMetric

from bayplan.images.runtime.objects import Image

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
_SIZES = (
    (0, "0-10MB"),
    (10 * _MIB, "10MB-100MB"),
    (100 * _MIB, "100MB-500MB"),
    (500 * _MIB, "500MB-1GB"),
    (_GIB, "1GB-5GB"),
    (5 * _GIB, "5GB-10GB"),
    (10 * _GIB, "10GB-20GB"),
    (20 * _GIB, "20GB-30GB"),
    (30 * _GIB, "30GB-40GB"),
    (40 * _GIB, "40GB-60GB"),
    (60 * _GIB, "60GB-100GB"),
    (100 * _GIB, "GT100GB"),
)
_LOWER_BOUNDS = [bound for bound, _ in _SIZES]
_SECONDS = (1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600)


def size_bucket(size: int) -> str:
    """Return the label of an image's size; a size on a border belongs to the smaller bucket."""
    return _SIZES[bisect_left(_LOWER_BOUNDS, size) - 1][1] if size > 0 else "N/A"


def _label(value: bool | None) -> str:
    return "unknown" if value is None else str(value).lower()


class ImageMetrics:
    """The metrics of one image manager and its GC manager."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ensured = CounterMetric(
            "kubelet_image_manager_ensure_image_requests",
            "Number of ensure-image requests.",
            ["pull_policy", "present_locally", "pull_required"],
            registry=registry,
        )
        self._pull_seconds = Histogram(
            "kubelet_image_pull_duration_seconds",
            "Duration of image pulls, waiting included, by image size.",
            ["image_size_in_bytes"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._checks = CounterMetric(
            "kubelet_imagemanager_image_mustpull_checks",
            "Number of credential checks of images that are present, by result.",
            ["result"],
            registry=registry,
        )
        self._collected = CounterMetric(
            "kubelet_image_garbage_collected",
            "Number of images that were garbage collected, by reason.",
            ["reason"],
            registry=registry,
        )
        self._intents = Gauge(
            "kubelet_imagemanager_ondisk_pullintents",
            "Number of pull intents on disk.",
            registry=registry,
        )
        self._records = Gauge(
            "kubelet_imagemanager_ondisk_pulledrecords",
            "Number of pulled records on disk.",
            registry=registry,
        )
        self._by_handler = Gauge(
            "bayplan_node_images",
            "Number of images on the node by runtime handler; empty is the default one.",
            ["runtime_handler"],
            registry=registry,
        )
        self._non_default = Gauge(
            "bayplan_node_images_non_default_runtime_handler",
            "Number of images on the node pulled for a handler other than the default one.",
            registry=registry,
        )
        self._clean_up_owed = Gauge(
            "bayplan_node_images_clean_up_owed",
            "1 if RuntimeClassInImageCriApi was switched and `bayplan images reset` is needed.",
            registry=registry,
        )

        self._plugin_errors = CounterMetric(
            "kubelet_credential_provider_plugin_errors",
            "Number of failed runs of a credential provider plugin.",
            ["plugin_name"],
            registry=registry,
        )
        self._plugin_seconds = Histogram(
            "kubelet_credential_provider_plugin_duration",
            "Duration in seconds of runs of a credential provider plugin.",
            ["plugin_name"],
            registry=registry,
        )
        self._provider_config = Gauge(
            "kubelet_credential_provider_config_info",
            "1 for the fingerprint of the credential providers' configuration.",
            ["hash"],
            registry=registry,
        )

    def plugin_ran(self, name: str, seconds: float) -> None:
        """Count a run of a credential provider plugin and its duration."""
        self._plugin_seconds.labels(name).observe(seconds)

    def plugin_failed(self, name: str) -> None:
        """Count a failed run of a credential provider plugin."""
        self._plugin_errors.labels(name).inc()

    def provider_config(self, fingerprint: str) -> None:
        """Set the hash of the credential providers' configuration."""
        self._provider_config.labels(fingerprint).set(1)

    def ensured(self, policy: str, present: bool | None, pull_required: bool | None) -> None:
        """Count an ensure-image request."""
        self._ensured.labels(policy.lower(), _label(present), _label(pull_required)).inc()

    def pulled(self, size: int, seconds: float) -> None:
        """Count a pulled image."""
        self._pull_seconds.labels(size_bucket(size)).observe(seconds)

    def checked(self, result: str) -> None:
        """Count a credential check of an image that is present."""
        self._checks.labels(result).inc()

    def collected(self, reason: str) -> None:
        """Count a garbage collected image."""
        self._collected.labels(reason).inc()

    def records(self, intents: int, pulled: int) -> None:
        """Set the number of records on disk."""
        self._intents.set(intents)
        self._records.set(pulled)

    def images(self, images: Iterable[Image]) -> None:
        """Set the number of images on the node."""
        by_handler = Counter(image.handler for image in images)
        self._by_handler.clear()
        for handler, count in by_handler.items():
            self._by_handler.labels(handler).set(count)
        self._non_default.set(sum(count for handler, count in by_handler.items() if handler))

    def clean_up_owed(self, is_needed: bool) -> None:
        """Set whether a clean-up is needed after the gate was switched."""
        self._clean_up_owed.set(int(is_needed))
