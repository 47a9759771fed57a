"""Preemption: the node that costs the least, and the pods that would have to go.

On each node that refuses a pod for a reason that passes, all pods of lower priority are taken away;
if the pod then fits, they are put back one by one, the most important first and those that a
disruption budget protects before others, as long as it still fits. What stays away are the victims.
Of the nodes that remain, the best is the one that breaks the fewest budgets, then the one whose
most important victim matters least, and so on, as kube-scheduler has it.

`victims` orders pods by importance and candidates by cost; `dry_run` tries many
nodes at once where victims matter by what they request alone, and one node at a time elsewhere;
`search` bounds how many nodes are tried.
"""

from bayplan.fit.preemption.search import PLUGIN, CandidateBounds, Preemption, preempt

__all__ = ["PLUGIN", "CandidateBounds", "Preemption", "preempt"]
