"""Measurements of a run, computed incrementally from its changes."""

from bayplan.lab.measurement.meter import Meter
from bayplan.lab.measurement.series import Grid, RunMeasurements, ScalingEvent

__all__ = ["Grid", "Meter", "RunMeasurements", "ScalingEvent"]
