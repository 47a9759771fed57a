"""The scheduler's configuration: a KubeSchedulerConfiguration, or the defaults.

What cannot be honoured is refused with its line and field, or, where nothing goes wrong without it,
named in `SchedulerSettings.warnings`. Nothing is dropped in silence.
"""

from bayplan.scheduler.config.parse import default_settings, parse_settings, read_settings
from bayplan.scheduler.config.sets import plugin_set, rules
from bayplan.scheduler.config.settings import (
    Backoff,
    QueueSettings,
    SchedulerProfile,
    SchedulerSettings,
)

__all__ = [
    "Backoff",
    "QueueSettings",
    "SchedulerProfile",
    "SchedulerSettings",
    "default_settings",
    "parse_settings",
    "plugin_set",
    "read_settings",
    "rules",
]
