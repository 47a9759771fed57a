"""What the agent goes by, which may change while it works: people edit their file of limits."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from bayplan.base.configfiles import ConfigFileError
from bayplan.kube.attachtables import LimitsSection, OwnLimits, prefixes, read_own_limits
from bayplan.node.decision import Settings
from bayplan.node.plugins.base import Reserve, Terms

log = logging.getLogger(__name__)


def settings_of(section: LimitsSection, *, enabled: bool) -> Settings:
    """What a section of a file asks for."""
    reserve = Reserve(section.reserve_root, section.interfaces, section.reserve)
    terms = Terms(reserve, section.limits)
    return Settings(terms, prefixes(section.prefix), section.csi_nodes, enabled)


class SettingsFromFile:
    """Settings whose limits are in a file; it is read again when it has changed.

    ConfigFileError if it cannot be used at the start. Later that is told, and what was read before
    goes on counting.
    """

    def __init__(self, base: Settings, path: Path) -> None:
        self._base = base
        self._path = path
        self._stamp = _stamp(path)
        self._settings = self._with(read_own_limits(path))

    def __call__(self) -> Settings:
        """The settings as they are now."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._settings = self._with(read_own_limits(self._path))
            except ConfigFileError as error:
                log.warning("the limits stay as they are: %s", error)
        return self._settings

    def _with(self, own: OwnLimits) -> Settings:
        return replace(self._base, terms=replace(self._base.terms, own=own))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What tells one state of a file from another; its ctime is there for a file that becomes
    readable, or whose time was put back.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
