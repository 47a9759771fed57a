"""Checks of a cluster: what is wrong with it, why that matters, and what to do next.

Pure functions over what was read of a cluster, and nothing is changed. A check group is one
file with one function; what it may find is a list of kinds, from which the documentation is made.
"""

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity
from bayplan.checks.registry import KINDS, CheckReport, check

__all__ = [
    "KINDS",
    "CheckKind",
    "CheckReport",
    "CheckedCluster",
    "Example",
    "Finding",
    "Severity",
    "check",
]
