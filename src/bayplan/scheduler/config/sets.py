"""The model's rules as the settings have them: each profile is a set of plugins of its own."""

from __future__ import annotations

from dataclasses import replace

from bayplan.fit import PluginSet, Profile
from bayplan.fit.plugins.registry import FILTERS, SCORES
from bayplan.scheduler.config.settings import SchedulerProfile, SchedulerSettings


def rules(settings: SchedulerSettings, profile: Profile | None = None) -> Profile:
    """Return the profile of a snapshot for these schedulers, based on another profile.

    Whatever is asked about a pod (where it goes, why not, whom it may push out, what may help it)
    is then answered by the plugins of the scheduler that it names.
    """
    sets = {one.name: plugin_set(one) for one in settings.profiles}
    return replace(profile or Profile(), schedulers=sets)


def plugin_set(profile: SchedulerProfile) -> PluginSet:
    """Return the plugin set of one scheduler profile."""
    # In the model's order, so that equal sets are one.
    scores = tuple((name, profile.scores[name]) for name, _ in SCORES if name in profile.scores)
    return PluginSet(
        filters=None if profile.filters == FILTERS else profile.filters,
        scores=None if scores == SCORES else scores,
        args=profile.args,
    )
