"""Bayplan: the parts of Kubernetes that decide about capacity, on one model of what fits."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.fit import Snapshot

__all__ = ["Snapshot", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`Snapshot` on first use: importing bayplan alone stays cheap."""
    if name == "Snapshot":
        from bayplan.fit import Snapshot  # noqa: PLC0415

        return Snapshot
    raise AttributeError(f"module 'bayplan' has no attribute {name!r}")
