"""A live snapshot: what informers tell, checked, put into the model between its decisions."""

from bayplan.observe.comparing import Comparison, Difference, compare
from bayplan.observe.following import LiveSnapshot, follow
from bayplan.observe.kinds import OBSERVED, which
from bayplan.observe.limitwatch import LimitCollector, LimitWatch
from bayplan.observe.observer import Listener, Observer
from bayplan.observe.setaside import Problem, ProblemListener, SetAside

__all__ = [
    "OBSERVED",
    "Comparison",
    "Difference",
    "LimitCollector",
    "LimitWatch",
    "Listener",
    "LiveSnapshot",
    "Observer",
    "Problem",
    "ProblemListener",
    "SetAside",
    "compare",
    "follow",
    "which",
]
