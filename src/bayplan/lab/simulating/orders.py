"""What one run needs, whole in itself; what is set over a cluster file; and where results go.

A cluster file is taken with the files that it names written into it, and with what was set on the
command line; the same order gives the same result, to the byte, wherever it is carried out.

A run that is there already need not be made again. A file is written beside its place and then
moved there, so that it is whole or not there at all; one that cannot be read is as if it were not.

A path goes through fields, and through lists by index or by the `name` of what stands there. What
is set is YAML. Whether the cluster file still makes sense is found out by reading it again; here it
is only found out where the path leads.
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
from bayplan.lab.measuring import Measured

FORMAT = 1


class Variant(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A cluster and how our daemons are told to behave in it."""

    name: str
    cluster: dict[str, object]
    """The cluster file, with everything that it names in it."""
    source: str = "cluster"
    """What it is called in errors."""
    gates: str = ""
    """Feature gates, as a flag has them."""
    expander: str = ""
    """How the autoscaler chooses among groups; empty for its own way."""
    crew: str = ""
    """Which daemons are at work, with commas."""


class Order(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One run."""

    variant: Variant
    seed: int
    seconds: float
    points: int
    trace: str = ""
    """Workloads beside the cluster file's, as a trace file in CSV."""
    trace_scale: float = 1.0
    """By how much its arrivals are farther apart."""
    format: int = FORMAT

    @property
    def title(self) -> str:
        """How a run is called among others."""
        return f"{self.variant.name}, seed {self.seed}"


class Inputs(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """All runs of a comparison: every variant with every seed."""

    variants: list[Variant]
    seeds: list[int]
    seconds: float
    points: int
    trace: str = ""
    trace_name: str = ""
    """What the trace is called in reports."""
    trace_scale: float = 1.0

    def orders(self) -> list[Order]:
        """The runs, in order: by variant, then by seed."""
        return [
            Order(
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


def key_of(order: Order, version: str) -> str:
    """By which the result of an order is found again: a digest of all that it depends on."""
    said = msgspec.json.encode([version, order], order="sorted")
    return hashlib.sha256(said).hexdigest()[:32]


encode = msgspec.json.Encoder(order="deterministic").encode
_decoder = msgspec.json.Decoder(Measured)


class Results:
    """The results of runs in a folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        self._version = version

    def path(self, order: Order) -> Path:
        """Where the result of a run is, or will be."""
        return self._folder / f"run-{key_of(order, self._version)}.json"

    def find(self, order: Order) -> Measured | None:
        """The result of a run, if it is there."""
        try:
            return decode(self.path(order).read_bytes())
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, order: Order, measured: Measured) -> None:
        """Have a result found."""
        path = self.path(order)
        beside = path.with_suffix(".part")
        beside.write_bytes(encode(measured))
        beside.replace(path)


def decode(data: bytes) -> Measured:
    """A result as it was kept; msgspec.DecodeError if it is none."""
    return _decoder.decode(data)


_STEP = re.compile(r"(?:^|\.)([A-Za-z_][\w-]*)|\[([^\[\]]+)\]")
_LONGEST = 200


class OverrideError(ValueError):
    """Something that cannot be set: where, and why."""


def overridden(cluster: dict[str, object], settings: tuple[str, ...]) -> dict[str, object]:
    """A cluster file with these settings over it; OverrideError if one leads nowhere."""
    made = copy.deepcopy(cluster)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals:
            raise OverrideError(f"{setting[:_LONGEST]!r}: write it as path=value")
        _set(made, path.strip(), _value(text, path))
    return made


def _value(text: str, path: str) -> object:
    try:
        return build(yaml.parse(text, Loader=yaml.CSafeLoader))
    except (YamlError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())[:_LONGEST]
        raise OverrideError(f"{path[:_LONGEST]}: not YAML: {said}") from None


def _steps(path: str) -> list[str]:
    found, end = [], 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        found.append(match[0].removeprefix("."))
        end = match.end()
    if not found or end != len(path):
        raise OverrideError(f"{path[:_LONGEST]!r} is no path such as nodeGroups[workers].max")
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
            raise OverrideError(f"{so_far[:_LONGEST]}: there is no {kind} there")


def _index(place: list[object], said: str, so_far: str) -> int:
    names = [one.get("name") if isinstance(one, dict) else None for one in place]
    if said in names:
        return names.index(said)
    if said.isdecimal() and int(said) < len(place):
        return int(said)
    known = [str(name) for name in names if name is not None]
    raise OverrideError(f"{so_far[:_LONGEST]}: {no_such('entry', said[:80], known)}")
