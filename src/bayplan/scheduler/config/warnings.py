"""Warnings about fields of a configuration that have no effect here, though one may expect it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.base.configfiles import FieldProblem
from bayplan.fit.profile import MOST_WEIGHT
from bayplan.scheduler.config import wire
from bayplan.scheduler.config.settings import SchedulerProfile

_JSON = "application/json"


def warnings(config: wire.Configuration, profiles: Sequence[SchedulerProfile]) -> Iterator[str]:
    """Return the warnings about a configuration, each with its field."""
    check_percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    everyone = [config.percentage_of_nodes_to_score]
    everyone += [profile.percentage_of_nodes_to_score for profile in config.profiles]
    if any(said not in {None, 0, 100} for said in everyone):
        yield "percentageOfNodesToScore: has no effect, all nodes are evaluated"
    if config.parallelism is not None:
        if config.parallelism <= 0:
            raise FieldProblem("parallelism", "must be more than 0")
        yield "parallelism: a decision looks at all nodes at once, in one thread"
    if config.enable_profiling or config.enable_contention_profiling:
        yield "enableProfiling: there are no profiling endpoints"
    if config.delay_cache_until_active is False:
        yield "delayCacheUntilActive: who waits to lead keeps no copy of the cluster, as if true"
    for index, profile in enumerate(profiles):
        yield from _of_profile(profile, f"profiles[{index}]")
    yield from _of_connection(config.client_connection)


def check_percentage(said: int | None, field: str) -> None:
    """FieldProblem unless it is one."""
    if said is not None and not 0 <= said <= 100:
        raise FieldProblem(field, "not from 0 to 100")


def _of_profile(profile: SchedulerProfile, field: str) -> Iterator[str]:
    for name, weight in profile.scores.items():
        if weight > MOST_WEIGHT:
            yield f"{field}.plugins: {name}'s weight {weight} counts as {MOST_WEIGHT}"
    for warning in profile.warnings:
        yield f"{field}.pluginConfig: {warning}"


def _of_connection(connection: wire.ClientConnection) -> Iterator[str]:
    for field, said in (
        ("acceptContentTypes", connection.accept_content_types),
        ("contentType", connection.content_type),
    ):
        if said and _JSON not in said:
            yield f"clientConnection.{field}: only JSON is spoken"
