"""Whole clusters in one process: API server, simulation and daemons, in real or virtual time."""

from bayplan.lab.lab import Daemon, DaemonFailedError, Lab
from bayplan.lab.live import LiveLab
from bayplan.lab.virtual import VirtualLab, run_virtually

__all__ = ["Daemon", "DaemonFailedError", "Lab", "LiveLab", "VirtualLab", "run_virtually"]
