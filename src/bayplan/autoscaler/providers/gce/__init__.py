"""GCE: node groups are managed instance groups."""

from bayplan.autoscaler.providers.gce.provider import check_options, open_provider

__all__ = ["check_options", "open_provider"]
