"""What a refusal means on this very node: the numbers, taints and labels behind the reason.

kube-scheduler's reasons are short so that they can be counted. Here is what a person then asks: how
much is free, which taint, which label, whose volumes, which pods. The plugin that refused tells.
"""

from __future__ import annotations

from bayplan.fit.explanation.trial import SnapshotTrial
from bayplan.fit.plugins.registry import explaining


def details_of(trial: SnapshotTrial) -> tuple[str, ...]:
    """The facts behind a refusal, as far as there is more to say."""
    details = explaining(trial.refusal.plugin).details
    if details is None:
        return ()
    with trial.as_refused():
        return tuple(details(trial))
