"""Whether a node may be drained: rules about its pods, what budgets allow, who is behind a pod."""

from __future__ import annotations

from bayplan.autoscaler.scaledown.drain.budgets import BudgetBook, BudgetIndex, RemainingBudgets
from bayplan.autoscaler.scaledown.drain.controllers import Controllers
from bayplan.autoscaler.scaledown.drain.rules import Outcome, Scene, Verdict, verdict

__all__ = [
    "BudgetBook",
    "BudgetIndex",
    "Controllers",
    "Outcome",
    "RemainingBudgets",
    "Scene",
    "Verdict",
    "verdict",
]
