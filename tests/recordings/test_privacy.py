"""Objects as they can be shown: what is taken out of them, and the other names they get."""

from __future__ import annotations

import importlib
import itertools
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bayplan
from bayplan.base.values import JsonObject, JsonValue
from bayplan.kube.attachlimits import PUBLISHED_LIMITS, attach_limit_keys, published_rules
from bayplan.kube.codec import KINDS, decode_object, encode
from bayplan.kube.meta import Condition, Quantity
from bayplan.kube.names import is_label_value, is_object_name, is_qualified_name
from bayplan.kube.validation import check
from bayplan.recordings.privacy import (
    KEPT_ANNOTATIONS,
    NOT_ANONYMISABLE,
    Anonymiser,
    Pseudonyms,
    scrub,
)
from tests.builders import make_csinode, make_node, make_pod, make_storage_class

NAMES = Pseudonyms(b"key")
SOURCES = Path(bayplan.__file__).parent
PACKAGES = ("fit", "queues", "scheduler", "observe", "kube", "nodegroups", "node", "autoscaler")
OTHERS_OBJECTS = ("providers/clusterapi", "scaledown/actuation", "recordings/privacy")
"""What reads annotations of Machines, or of live nodes while it acts on them."""
READS = re.compile(
    r"annotations\.get\(\s*([A-Z_]+)|([A-Z_]+) (?:not )?in [a-z_.]*annotations\b"
    r"|for \w+ in ([A-Z_]+)"
)


def test_every_annotation_that_decides_something_is_kept() -> None:
    read = set()
    for package in PACKAGES:
        for path in (SOURCES / package).rglob("*.py"):
            text = path.read_text()
            if "annotations" not in text or any(one in str(path) for one in OTHERS_OBJECTS):
                continue
            name = ".".join(("bayplan", *path.relative_to(SOURCES).with_suffix("").parts))
            module = importlib.import_module(name.removesuffix(".__init__"))
            for line in text.splitlines():
                if "annotations" in line:
                    found = (one for groups in READS.findall(line) for one in groups if one)
                    read |= {value for one in found for value in _values(getattr(module, one, ()))}
    assert PUBLISHED_LIMITS in read
    assert len(read) > 15
    assert read <= KEPT_ANNOTATIONS


def _values(constant: object) -> tuple[str, ...]:
    if isinstance(constant, str):
        return (constant,)
    return tuple(constant) if isinstance(constant, tuple | frozenset) else ()


def test_what_decides_nothing_is_not_there() -> None:
    secret = "hunter2"
    env: list[JsonValue] = [{"name": "PASSWORD", "value": secret}]
    container: JsonObject = {
        "name": "c",
        "image": "i",
        "env": env,
        "args": [secret],
        "command": [secret],
    }
    pod = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "namespace": "default",
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": secret,
                    "example.com/note": secret,
                    "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
                },
                "managedFields": [{"manager": secret}],
            },
            "spec": {
                "containers": [container],
                "serviceAccountName": secret,
                "imagePullSecrets": [{"name": secret}],
                "volumes": [
                    {"name": "s", "secret": {"secretName": secret}},
                    {"name": "h", "hostPath": {"path": f"/home/{secret}"}},
                    {"name": "a", "azureFile": {"secretName": secret, "shareName": "x"}},
                ],
            },
            "status": {"message": secret},
        }
    )
    scrub(pod)
    written = encode(pod).decode()
    assert secret not in written
    assert "safe-to-evict" in written
    storage = make_storage_class("fast", "ebs.csi.aws.com").obj()
    storage.parameters = {"secret": secret}
    scrub(storage)
    assert secret not in encode(storage).decode()


@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        ("data-web-0", ("data", "web-0")),
        ("web-0-scratch", ("web-0", "scratch")),
        ("shop/web-0", ("shop", "web-0")),
    ],
)
def test_names_that_are_put_together_still_are(whole: str, parts: tuple[str, str]) -> None:
    separator = "/" if "/" in whole else "-"
    assert NAMES.name(whole) == separator.join(map(NAMES.name, parts))
    assert whole not in NAMES.name(whole)


def test_words_of_kubernetes_and_of_clouds_stay_readable() -> None:
    for key in ("topology.kubernetes.io/zone", "node.kubernetes.io/not-ready", "kubernetes.io/os"):
        assert NAMES.key(key) == key
    for resource in ("cpu", "nvidia.com/gpu", "hugepages-2Mi", "attachable-volumes-aws-ebs"):
        assert NAMES.resource(resource) == resource
    for name in ("kube-system", "default", "ebs.csi.aws.com", "kubernetes.io/no-provisioner"):
        assert NAMES.name(name) == name
    assert NAMES.value("node.kubernetes.io/instance-type", "m5.large") == "m5.large"
    assert NAMES.value("node.kubernetes.io/instance-type", "rack.secret") != "rack.secret"
    assert NAMES.value("example.com/rank", "12") == "12"
    assert NAMES.note("kubernetes.io/aws-ebs,mine") == f"kubernetes.io/aws-ebs,{NAMES.name('mine')}"
    assert "secret" not in NAMES.key("secret.kubernetes.io/secret")
    assert NAMES.key("secret.kubernetes.io/secret").partition("/")[0].endswith(".kubernetes.io")


def test_pseudonyms_are_names_and_labels_however_long_what_they_stand_for() -> None:
    for text in ("a", "a-b-c-d-e-f-g-h-i-j", "x" * 63, "-".join("abcdefgh" * 16)[:253], "A_b.C"):
        assert is_object_name(NAMES.name(text))
        assert is_label_value(NAMES.value("k", text[:63].strip("-")))
        assert is_qualified_name(NAMES.key(f"example.com/{text[:63].strip('-')}"))


def test_the_same_key_gives_the_same_names_and_another_others() -> None:
    assert Pseudonyms(b"key").name("web-0") == NAMES.name("web-0")
    assert Pseudonyms(b"other").name("web-0") != NAMES.name("web-0")


def test_a_limit_follows_its_driver_to_the_other_name() -> None:
    node = make_node("n").capacity(cpu="1").obj()
    node.status.allocatable["attachable-volumes-csi-disk.example.com"] = "4"
    node.metadata.annotations[PUBLISHED_LIMITS] = (
        '{"attachable-volumes-csi-disk.example.com":"a rule"}'
    )
    csinode = make_csinode("n").driver("disk.example.com", 4).obj()
    for obj in (node, csinode):
        Anonymiser(NAMES)(obj)
        check(obj)
    key = f"attachable-volumes-csi-{NAMES.name('disk.example.com')}"
    assert attach_limit_keys(csinode.spec.drivers[0].name)[0] in node.status.allocatable
    assert list(published_rules(node.metadata.annotations)) == [
        one for one in node.status.allocatable if one.startswith(key[:24])
    ]


def test_addresses_of_hosts_stay_addresses() -> None:
    pod = make_pod("p").host_port(80).obj()
    pod.spec.containers[0].ports[0].host_ip = "192.0.2.7"
    Anonymiser(NAMES)(pod)
    check(pod)
    assert "192" not in encode(pod).decode()
    assert NAMES.address("0.0.0.0") == "0.0.0.0"


class FieldFiller:
    """Fills every field of a type, each text with a word of its own."""

    def __init__(self, amount: str = "") -> None:
        self._numbers = itertools.count()
        self._amount = amount
        self.amounts = 0

    def fill(self, shape: Any) -> Any:  # noqa: PLR0911 - one for each kind of type
        if shape == Quantity and self._amount:
            self.amounts += 1
            return self._amount
        origin, inner = typing.get_origin(shape), typing.get_args(shape)
        if origin is typing.Annotated:
            return self.fill(inner[0])
        if origin in {typing.Union, types.UnionType}:
            choices = [one for one in inner if one is not types.NoneType]
            return self.fill(str if str in choices else choices[0])
        if origin is typing.Literal:
            return next(one for one in inner if one)
        if origin is list:
            return [self.fill(inner[0])]
        if origin is dict:
            return {self.fill(str): self.fill(inner[1])}
        if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
            return shape(**dict(self._fields(shape)))
        return 1 if shape in {int, float, bool} else f"Planted{next(self._numbers)}"

    def _fields(self, shape: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
        for name, hint in typing.get_type_hints(shape, include_extras=True).items():
            yield name, self.fill(hint)


HIDDEN = [name for name, kind in KINDS.items() if kind.type not in NOT_ANONYMISABLE]


@pytest.mark.parametrize("kind", HIDDEN)
def test_no_word_of_somebody_is_left_in_any_field(kind: str) -> None:
    obj = FieldFiller().fill(KINDS[kind].type)
    obj.api_version, obj.kind = KINDS[kind].api_version, kind
    scrub(obj)
    Anonymiser(NAMES)(obj)
    assert "planted" not in encode(obj).decode().lower()


@pytest.mark.parametrize("kind", HIDDEN)
def test_amounts_stay_in_all_fields(kind: str) -> None:
    planting = FieldFiller("17Gi")
    obj = planting.fill(KINDS[kind].type)
    Anonymiser(NAMES)(obj)
    assert encode(obj).decode().count('"17Gi"') == planting.amounts


def test_words_of_conditions_and_owners_that_kubernetes_has_not_given_are_hidden() -> None:
    pod = make_pod("p").owner("StatefulSet", "web").obj()
    pod.metadata.owner_references[0].api_version = "fleet.example.com/v1"
    pod.status.conditions = [
        Condition(type="ledger.example.com/ready", status="False", reason="LedgerMissing"),
        Condition(type="PodScheduled", status="False", reason="Unschedulable"),
    ]
    Anonymiser(NAMES)(pod)
    written = encode(pod).decode()
    assert not any(one in written.lower() for one in ("ledger", "example", "fleet"))
    assert '"type":"PodScheduled","status":"False","reason":"Unschedulable"' in written
    assert '"kind":"StatefulSet"' in written
