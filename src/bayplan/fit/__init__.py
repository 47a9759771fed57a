"""The model of what fits: snapshot, forks, predicates, scores, explanations, volume limits."""

from bayplan.fit.decision import Assumption, ClaimBinding, Decision, Refusal
from bayplan.fit.profile import CacheLimits, MissingDriver, PluginSet, Profile
from bayplan.fit.snapshot import Snapshot

__all__ = [
    "Assumption",
    "CacheLimits",
    "ClaimBinding",
    "Decision",
    "MissingDriver",
    "PluginSet",
    "Profile",
    "Refusal",
    "Snapshot",
]
