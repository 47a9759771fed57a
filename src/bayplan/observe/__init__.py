"""A live snapshot: informers' changes, validated and applied to the model between decisions."""

from bayplan.observe.comparer import Comparison, Difference, compare
from bayplan.observe.invalid_objects import InvalidObjects, ObjectProblem, ProblemListener
from bayplan.observe.kinds import OBSERVED, selection_of
from bayplan.observe.limitwatch import LimitCollector, LimitWatch
from bayplan.observe.livesnapshot import LiveSnapshot, follow
from bayplan.observe.observer import Listener, Observer

__all__ = [
    "OBSERVED",
    "Comparison",
    "Difference",
    "InvalidObjects",
    "LimitCollector",
    "LimitWatch",
    "Listener",
    "LiveSnapshot",
    "ObjectProblem",
    "Observer",
    "ProblemListener",
    "compare",
    "follow",
    "selection_of",
]
