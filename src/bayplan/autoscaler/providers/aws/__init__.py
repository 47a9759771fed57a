"""AWS: node groups are Auto Scaling groups."""

from bayplan.autoscaler.providers.aws.provider import check_options, open_provider

__all__ = ["check_options", "open_provider"]
