"""The model of what fits: snapshot, forks, predicates, scores, explanations, volume limits."""

from bayplan.fit.limits import Limits
from bayplan.fit.profile import MissingDriver, Profile
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Decision, Snapshot

__all__ = ["Decision", "Limits", "MissingDriver", "Profile", "Refusal", "Snapshot"]
