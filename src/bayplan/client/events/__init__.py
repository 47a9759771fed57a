"""Reporting Events about objects."""

from bayplan.client.events.notes import NoEvents, Notes
from bayplan.client.events.recorder import Recorder, Reporter, reference_to

__all__ = ["NoEvents", "Notes", "Recorder", "Reporter", "reference_to"]
