"""The specification of a run, overrides of its cluster file, and the files of results.

A specification has the whole cluster file, with the files that it refers to and the overrides of
the command line; the same specification gives the same result wherever it runs.

A run whose result exists is not repeated. A result is written to a temporary file and then moved,
so that it is complete or absent; a file that cannot be read counts as absent.

The path of an override goes through fields, and through lists by index or by the `name` of an
entry. Its value is YAML. Only the path is checked here; the cluster file is validated afterwards.
"""

from __future__ import annotations

import copy
import hashlib
import re
from pathlib import Path

import msgspec
import yaml

from bayplan.base.suggestions import no_such
from bayplan.base.yaml_values import YamlError, build
from bayplan.lab.measurement import RunMeasurements
from bayplan.lab.measurement.old_names import use_new_names

FORMAT = 1


class SimulationVariant(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A cluster and the settings of our daemons in it."""

    name: str
    cluster: dict[str, object]
    """The cluster file, with the content of the files that it refers to."""
    source: str = "cluster"
    """Its name in errors."""
    gates: str = ""
    """Feature gates, in the syntax of the flag."""
    expander: str = ""
    """The expander of the autoscaler; empty for the default."""
    daemons: str = ""
    """The names of the daemons, separated by commas."""


class RunSpec(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One run."""

    variant: SimulationVariant
    seed: int
    seconds: float
    points: int
    trace: str = ""
    """Workloads in addition to the cluster file, as a trace in CSV."""
    trace_scale: float = 1.0
    """The factor by which times of the trace are multiplied."""
    format: int = FORMAT

    @property
    def title(self) -> str:
        """The name of the run."""
        return f"{self.variant.name}, seed {self.seed}"


class SimulationInputs(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """All runs of a comparison: every variant with every seed."""

    variants: list[SimulationVariant]
    seeds: list[int]
    seconds: float
    points: int
    trace: str = ""
    trace_name: str = ""
    """The name of the trace in reports."""
    trace_scale: float = 1.0

    def runs(self) -> list[RunSpec]:
        """Return the runs, by variant and then by seed."""
        return [
            RunSpec(
                variant=variant,
                seed=seed,
                seconds=self.seconds,
                points=self.points,
                trace=self.trace,
                trace_scale=self.trace_scale,
            )
            for variant in self.variants
            for seed in self.seeds
        ]


def result_key(run: RunSpec, version: str) -> str:
    """Return the key of the result of a run: a digest of all that it depends on."""
    content = msgspec.json.encode([version, run], order="sorted")
    return hashlib.sha256(content).hexdigest()[:32]


encode = msgspec.json.Encoder(order="deterministic").encode


class RunResults:
    """The results of runs in a folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        self._version = version

    def path(self, run: RunSpec) -> Path:
        """Return the path of the result of a run."""
        return self._folder / f"run-{result_key(run, self._version)}.json"

    def find(self, run: RunSpec) -> RunMeasurements | None:
        """Return the result of a run, if it exists."""
        try:
            return decode(self.path(run).read_bytes())
        except (OSError, msgspec.DecodeError):
            return None

    def store(self, run: RunSpec, measurements: RunMeasurements) -> None:
        """Store the result of a run."""
        path = self.path(run)
        temporary = path.with_suffix(".part")
        temporary.write_bytes(encode(measurements))
        temporary.replace(path)


def decode(data: bytes) -> RunMeasurements:
    """Decode a stored result, also one with old names; raise msgspec.DecodeError if it is none."""
    document = msgspec.json.decode(data)
    use_new_names(document)
    return msgspec.convert(document, RunMeasurements)


_STEP = re.compile(r"(?:^|\.)([A-Za-z_][\w-]*)|\[([^\[\]]+)\]")
_MAX_SHOWN = 200


class OverrideError(ValueError):
    """An override that cannot be applied: its path and the reason."""


def apply_overrides(cluster: dict[str, object], settings: tuple[str, ...]) -> dict[str, object]:
    """Return a cluster file with these settings; raise OverrideError for an invalid path."""
    changed = copy.deepcopy(cluster)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals:
            raise OverrideError(f"{setting[:_MAX_SHOWN]!r}: write it as path=value")
        _set(changed, path.strip(), _value(text, path))
    return changed


def _value(text: str, path: str) -> object:
    try:
        return build(yaml.parse(text, Loader=yaml.CSafeLoader))
    except (YamlError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:_MAX_SHOWN]
        raise OverrideError(f"{path[:_MAX_SHOWN]}: not YAML: {reason}") from None


def _steps(path: str) -> list[str]:
    found, end = [], 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        found.append(match[0].removeprefix("."))
        end = match.end()
    if not found or end != len(path):
        raise OverrideError(f"{path[:_MAX_SHOWN]!r} is not a path such as nodeGroups[workers].max")
    return found


def _set(cluster: dict[str, object], path: str, value: object) -> None:
    place: object = cluster
    steps = _steps(path)
    for number, step in enumerate(steps):
        so_far = ".".join(steps[: number + 1]).replace(".[", "[")
        following = steps[number + 1] if number + 1 < len(steps) else None
        if isinstance(place, list) and step.startswith("["):
            index = _index(place, step[1:-1], so_far)
            if following is None:
                place[index] = value
            else:
                place = place[index]
        elif isinstance(place, dict) and not step.startswith("["):
            if following is None:
                place[step] = value
            else:
                place = place.setdefault(step, [] if following.startswith("[") else {})
        else:
            kind = "list" if step.startswith("[") else "section with fields"
            raise OverrideError(f"{so_far[:_MAX_SHOWN]}: not a {kind}")


def _index(place: list[object], step: str, so_far: str) -> int:
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in place]
    if step in names:
        return names.index(step)
    if step.isdecimal() and int(step) < len(place):
        return int(step)
    known = [str(name) for name in names if name is not None]
    raise OverrideError(f"{so_far[:_MAX_SHOWN]}: {no_such('entry', step[:80], known)}")
