"""Azure: node groups are virtual machine scale sets."""

from bayplan.autoscaler.providers.azure.provider import check_options, open_provider

__all__ = ["check_options", "open_provider"]
