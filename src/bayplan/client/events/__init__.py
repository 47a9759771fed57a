"""Reporting Events about objects."""

from bayplan.client.events.recorder import Recorder, Reporter, reference_to

__all__ = ["Recorder", "Reporter", "reference_to"]
