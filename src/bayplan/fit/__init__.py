"""The model of what fits: snapshot, forks, predicates, scores, explanations, volume limits."""

from bayplan.fit.decision import Assumption, Decision
from bayplan.fit.limits import CacheLimits
from bayplan.fit.plugin_set import PluginSet
from bayplan.fit.profile import MissingDriver, Profile
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.volumes.binding import ClaimBinding

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
