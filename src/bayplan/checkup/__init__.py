"""A doctor for a cluster: what is wrong with it, why that matters, and what to do next.

Pure functions over what was read of a cluster, and nothing is changed. A family of findings is one
file with one function; what it may find is a list of kinds, from which the documentation is made.
"""

from bayplan.checkup.checks import KINDS, Report, check
from bayplan.checkup.finding import Example, Finding, Kind, Severity
from bayplan.checkup.subject import Subject

__all__ = [
    "KINDS",
    "Example",
    "Finding",
    "Kind",
    "Report",
    "Severity",
    "Subject",
    "check",
]
