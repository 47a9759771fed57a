"""Arguments of a profile's plugins: each plugin's record checks and compiles its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.base.configfiles import FieldProblem
from bayplan.fit.profile import CompiledArgs
from bayplan.scheduler.config import wire
from bayplan.scheduler.config.plugins import RECORDS, check_known


class ProfileArgs(NamedTuple):
    """The arguments of a profile's plugins."""

    compiled: CompiledArgs
    """As plugins read them; those that are the defaults are left out."""
    warnings: tuple[str, ...]
    """What was asked for and makes no difference here."""


def plugin_args(configs: Sequence[wire.PluginConfig], field: str) -> ProfileArgs:
    """Return the arguments of all plugins of a profile; FieldProblem if they cannot be used."""
    read: dict[str, object] = {}
    warnings: list[str] = []
    for index, config in enumerate(configs):
        place = f"{field}[{index}]"
        check_known(config.name, f"{place}.name")
        if config.name in read:
            raise FieldProblem(place, f"{config.name} is there twice")
        read[config.name] = None
        arguments = RECORDS[config.name].arguments if config.name in RECORDS else None
        if arguments is not None:
            read[config.name], said = arguments.read(config.args, f"{place}.args")
            warnings += said
        elif config.args:
            raise FieldProblem(f"{place}.args", f"{config.name} takes none")
    ordered = (read.get(name) for name in RECORDS)  # so that equal sets are one
    changed = (one for one in ordered if one is not None and one != type(one)())
    return ProfileArgs(tuple(changed), tuple(warnings))
