"""The agent's settings, with a file of custom limits that is read again when it changes."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from bayplan.base.configfiles import ConfigFileError
from bayplan.kube.attachtables import CustomLimits, LimitsSection, prefixes, read_custom_limits
from bayplan.node.decision import AttachLimitSettings
from bayplan.node.plugins.base import LimitPluginOptions, ReservedSlots

log = logging.getLogger(__name__)


def settings_of(section: LimitsSection, *, enabled: bool) -> AttachLimitSettings:
    """Return the settings of a section of a configuration file."""
    reserve = ReservedSlots(section.reserve_root, section.interfaces, section.reserve)
    options = LimitPluginOptions(reserve, section.limits)
    return AttachLimitSettings(options, prefixes(section.prefix), section.csi_nodes, enabled)


class SettingsFromFile:
    """Settings with custom limits of a file, which is read again when it has changed.

    ConfigFileError if it cannot be used at the start. Later an error is logged, and the last valid
    limits stay in use.
    """

    def __init__(self, base: AttachLimitSettings, path: Path) -> None:
        self._base = base
        self._path = path
        self._stamp = _stamp(path)
        self._settings = self._with(read_custom_limits(path))

    def __call__(self) -> AttachLimitSettings:
        """Return the present settings."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._settings = self._with(read_custom_limits(self._path))
            except ConfigFileError as error:
                log.warning("custom limits not reloaded, the last valid ones stay: %s", error)
        return self._settings

    def _with(self, own: CustomLimits) -> AttachLimitSettings:
        return replace(self._base, options=replace(self._base.options, own=own))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return the identity of a file's state; ctime is for a file that becomes readable, or whose
    modification time was set back.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
