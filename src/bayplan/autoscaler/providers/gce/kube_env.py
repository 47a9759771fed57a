"""What the metadata of an instance template has about its nodes.

`kube-env` is YAML whose variable AUTOSCALER_ENV_VARS is for autoscalers; `autoscaler-env-vars` is
the same text as an item of its own, for clusters without a kube-env, and overrides it by variable:

    node_labels=pool=a,team=shop;node_taints=dedicated=shop:NoSchedule;kube_reserved=cpu=60m;
    extended_resources=example.com/chip=2;autoscaling_options=scaledownunneededtime=5m;
    evictionHard=memory.available=100Mi;os=linux;os_distribution=cos;arch=amd64;
    ephemeral_storage_local_ssd_count=1;csi_drivers=pd.csi.storage.gke.io=15,x.example.com=none

`csi_drivers` is Bayplan's, the others are Cluster Autoscaler's. Older kube-envs have NODE_LABELS,
NODE_TAINTS and the kubelet's --kube-reserved instead. A kube-env also has keys and tokens: only the
variables above are kept, and no error quotes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import yaml

from bayplan.autoscaler.providers.descriptions import (
    format_problem,
    read_amounts,
    read_labels,
    read_options,
    read_taint,
    split_pairs,
)
from bayplan.autoscaler.providers.gce.api_types import MetadataItem
from bayplan.base.yaml_values import YamlError, build
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from bayplan.nodegroups.templates import Limits, parse_limits

KUBE_ENV, OWN_ITEM = "kube-env", "autoscaler-env-vars"
LONGEST = 512 * 1024
"""The maximum size of a metadata value; Compute Engine's own is 256 KiB."""
_VARIABLES = "AUTOSCALER_ENV_VARS"
_OLD_NAMES = {"NODE_LABELS": "node_labels", "NODE_TAINTS": "node_taints"}
_RESERVED = re.compile(r"--kube-reserved=([^ ]+)")
_RESOURCE = "clusterautoscaler-nodetemplate-resources."
"""A label with this prefix is a resource, as in Cluster Autoscaler."""
_SYSTEMS = ("linux", "windows")
_ARCHITECTURES = ("amd64", "arm64")


@dataclass(frozen=True, slots=True)
class EnvValues:
    """The values of a template's metadata, and their problems."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    resources: Mapping[str, Quantity] = field(default_factory=dict)
    reserved: Mapping[str, Quantity] | None = None
    """What the kubelet reserves of cpu, memory and ephemeral storage; None if it is unknown."""
    eviction: Mapping[str, str] = field(default_factory=dict)
    """The kubelet's hard eviction thresholds."""
    options: Mapping[str, float | bool] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict)
    unread_limits: frozenset[str] = frozenset()
    """Drivers whose limit cannot be read: they are left out, also if the machine type has one."""
    system: str = "linux"
    distribution: str = "cos"
    architecture: str = ""
    """Empty if only the machine type has it."""
    local_ssds: int = 0
    """Local SSDs that hold the ephemeral storage."""
    uses_boot_disk: bool = True
    """Whether the boot disk holds the ephemeral storage."""
    blockers: tuple[str, ...] = ()
    """Problems with which there is no template: pods might not tolerate its nodes."""
    problems: tuple[str, ...] = ()


def read_metadata(items: Iterable[MetadataItem]) -> EnvValues:
    """Read the values in a template's metadata."""
    values = {one.key: one.value for one in items if one.key in (KUBE_ENV, OWN_ITEM)}
    for name, text in values.items():
        if len(text) > LONGEST:
            return _unread(f"metadata {name}: longer than {LONGEST} characters")
    try:
        env = _kube_env(values.get(KUBE_ENV, ""))
    except (yaml.YAMLError, YamlError, RecursionError):
        return _unread(f"metadata {KUBE_ENV}: this is not a map in YAML")
    found, wrong = _variables(env.get(_VARIABLES, ""), f"metadata {KUBE_ENV}: {_VARIABLES}")
    own, own_wrong = _variables(values.get(OWN_ITEM, ""), f"metadata {OWN_ITEM}")
    old = {new: env[name] for name, new in _OLD_NAMES.items() if name in env}
    if (reserved := _RESERVED.search(env.get("KUBELET_TEST_ARGS", ""))) is not None:
        old["kube_reserved"] = reserved[1]
    return _values({**old, **found, **own}, (*wrong, *own_wrong))


def _unread(problem: str) -> EnvValues:
    return EnvValues(blockers=(problem,), problems=(problem,))


def _kube_env(text: str) -> dict[str, str]:
    """Return the variables of a kube-env that are read."""
    if not text.strip():
        return {}
    found = build(yaml.parse(text, Loader=yaml.CSafeLoader))
    if not isinstance(found, dict):
        raise yaml.YAMLError
    wanted = (_VARIABLES, "KUBELET_TEST_ARGS", *_OLD_NAMES)
    return {name: value for name in wanted if isinstance(value := found.get(name), str)}


def _variables(text: str, place: str) -> tuple[dict[str, str], list[str]]:
    """Split `name=value;name=value`."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for part in filter(None, (one.strip() for one in text.split(";"))):
        name, separator, value = part.partition("=")
        if separator:
            found[name.strip()] = value.strip(" \"'")
        else:
            problems.append(format_problem(place, part, "this is not NAME=VALUE"))
    return found, problems


def _values(env: Mapping[str, str], malformed: tuple[str, ...]) -> EnvValues:
    labels, wrong_labels = read_labels(split_pairs(env.get("node_labels", "")), "node_labels")
    taints, wrong_taints = _taints(env.get("node_taints", ""))
    resources, wrong_resources = _resources(env.get("extended_resources", ""), labels)
    reserved, wrong_reserved = _reserved(env.get("kube_reserved"))
    settings = dict(split_pairs(env.get("autoscaling_options", "")))
    options, wrong_options = read_options(settings, "autoscaling_options ")
    drivers = dict(split_pairs(env.get("csi_drivers", "")))
    limits, wrong_limits = parse_limits(drivers, "csi_drivers ")
    system, wrong_system = _one_of(env, "os", _SYSTEMS, "linux")
    architecture, wrong_arch = _one_of(env, "arch", _ARCHITECTURES, "")
    blockers = (*malformed, *wrong_taints, *wrong_system)
    ssds = env.get("ephemeral_storage_local_ssd_count", "")
    return EnvValues(
        labels=labels,
        taints=tuple(taints),
        resources=resources,
        reserved=reserved,
        eviction=dict(split_pairs(env.get("evictionHard", ""))),
        options=options,
        limits=limits,
        unread_limits=frozenset(drivers) - limits.keys(),
        system=system,
        distribution=env.get("os_distribution", "cos").removesuffix("_containerd"),
        architecture=architecture,
        local_ssds=int(ssds) if ssds.isascii() and ssds.isdecimal() and len(ssds) <= 3 else 0,
        uses_boot_disk=env.get("BLOCK_EPH_STORAGE_BOOT_DISK") != "true",
        blockers=blockers,
        problems=(
            *blockers,
            *wrong_labels,
            *wrong_resources,
            *wrong_reserved,
            *wrong_options,
            *wrong_limits,
            *wrong_arch,
        ),
    )


def _taints(text: str) -> tuple[list[Taint], list[str]]:
    found: list[Taint] = []
    problems: list[str] = []
    for key, rest in split_pairs(text):
        value, _, effect = rest.rpartition(":")
        taint, wrong = read_taint(key, value, effect, "node_taints")
        found += [taint] if taint is not None else []
        problems += wrong
    return found, problems


def _resources(text: str, labels: Mapping[str, str]) -> tuple[dict[str, Quantity], list[str]]:
    marked = {
        key.removeprefix(_RESOURCE): value
        for key, value in labels.items()
        if key.startswith(_RESOURCE)
    }
    amounts = {**dict(split_pairs(text)), **marked}
    return read_amounts(amounts, {name: f"extended_resources {name}" for name in amounts})


def _reserved(text: str | None) -> tuple[dict[str, Quantity] | None, list[str]]:
    if text is None:
        return None, []
    kept = (CPU, MEMORY, EPHEMERAL_STORAGE)
    amounts = {name: value for name, value in split_pairs(text) if name in kept}
    return read_amounts(amounts, {name: f"kube_reserved {name}" for name in amounts})


def _one_of(
    env: Mapping[str, str], name: str, known: tuple[str, ...], otherwise: str
) -> tuple[str, list[str]]:
    value = env.get(name, otherwise)
    if value in (*known, otherwise):
        return value, []
    return otherwise, [format_problem(name, value, f"must be one of {', '.join(known)}")]
