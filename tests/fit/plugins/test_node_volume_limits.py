"""The gates about volumes, side by side: on, off, and on again.

Off is exactly what was before the feature: without VolumeLimitScaling a node that does not report a
driver takes any number of its volumes; without AttachVolumeLimit nobody reads what nodes publish in
their allocatable.
"""

from __future__ import annotations

import pytest

from bayplan.fit import MissingDriver, Profile, Snapshot
from bayplan.fit.batches import fill_all, group_pods
from bayplan.fit.explanation import explain
from bayplan.fit.volumes.limits import Limit, LimitSource, limit_of
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES, csi_attach_limit_key
from bayplan.kube.storage import VolumeAttachment
from tests.builders import (
    make_attachment,
    make_csidriver,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
)
from tests.fit.kubernetes import node

EBS = "ebs.csi.aws.com"
IN_TREE_EBS = "kubernetes.io/aws-ebs"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def profile(
    missing: MissingDriver = MissingDriver.HOLD_BACK,
    override: int | None = None,
    **gates: bool,
) -> Profile:
    return Profile(gates=FeatureGates(gates), missing_driver=missing, max_volumes_override=override)


def feasible(objects: list[KubeObject], pod: Pod, rules: Profile) -> set[str]:
    found = explain(Snapshot(objects, profile=rules), pod, with_fixes=False)
    return {answer.name for answer in found.nodes if answer.fits}


# -- no driver here ----------------------------------------------------------------------------


def no_driver_here(*more: KubeObject) -> list[KubeObject]:
    """One node with the driver, one with a CSINode that does not list it, one without any."""
    return [
        make_node("with").obj(),
        make_csinode("with").driver(EBS, 8).obj(),
        make_node("listed-nothing").obj(),
        make_csinode("listed-nothing").obj(),
        make_node("bare").obj(),
        make_storage_class("fast", EBS).waits().obj(),
        make_pvc("c").storage_class("fast").obj(),
        *more,
    ]


EVERYWHERE = {"with", "listed-nothing", "bare"}
NEEDS_DRIVER = make_pod("p").claim("c").obj()


def test_a_node_without_the_driver_is_not_used_with_the_gate_on_off_and_on() -> None:
    seen = [
        feasible(no_driver_here(), NEEDS_DRIVER, profile(VolumeLimitScaling=on))
        for on in (True, False, True)
    ]
    assert seen == [{"with"}, EVERYWHERE, {"with"}]


def test_a_node_without_the_driver_is_used_for_other_pods() -> None:
    for on in (True, False):
        rules = profile(VolumeLimitScaling=on)
        assert feasible(no_driver_here(), make_pod("plain").obj(), rules) == EVERYWHERE


def test_the_refusal_names_the_driver() -> None:
    found = explain(Snapshot(no_driver_here()), NEEDS_DRIVER, with_fixes=False)
    reasons = {a.name: a.refusal.reasons for a in found.nodes if a.refusal is not None}
    expected = (f"{EBS} CSI driver is not installed on the node",)
    assert reasons == {"bare": expected, "listed-nothing": expected}


@pytest.mark.parametrize(
    ("rule", "word", "used"),
    [
        (MissingDriver.HOLD_BACK, None, {"with"}),
        (MissingDriver.HOLD_BACK, True, {"with"}),
        (MissingDriver.HOLD_BACK, False, EVERYWHERE),
        (MissingDriver.OPT_IN, None, EVERYWHERE),
        (MissingDriver.OPT_IN, True, {"with"}),
        (MissingDriver.OPT_IN, False, EVERYWHERE),
    ],
)
def test_the_driver_has_its_word_under_either_rule(
    rule: MissingDriver, word: bool | None, used: set[str]
) -> None:
    objects = no_driver_here(make_csidriver(EBS).prevent_if_missing(word).obj())
    assert feasible(objects, NEEDS_DRIVER, profile(rule)) == used


def test_a_provisioner_that_is_no_csi_driver_holds_nobody_back() -> None:
    objects = [
        make_node("n").obj(),
        make_storage_class("nfs", "example.com/nfs").waits().obj(),
        make_pvc("c").storage_class("nfs").obj(),
    ]
    assert feasible(objects, NEEDS_DRIVER, profile()) == {"n"}


def test_a_limit_that_is_reported_counts_with_the_gate_on_and_off() -> None:
    full = [
        make_node("n").obj(),
        make_csinode("n").driver(EBS, 1).obj(),
        make_pv("pv").csi(EBS, "v").bound_to("taken").obj(),
        make_pvc("taken").volume("pv").obj(),
        make_pod("x").claim("taken").node("n").obj(),
        make_storage_class("fast", EBS).waits().obj(),
        make_pvc("c").storage_class("fast").obj(),
    ]
    for on in (True, False):
        assert feasible(full, NEEDS_DRIVER, profile(VolumeLimitScaling=on)) == set()


# -- old limits, by node type --------------------------------------------------------------------


def published(key: str, limit: str, used: int) -> list[KubeObject]:
    """A node that publishes a limit for EBS under a key, with so many volumes in use."""
    node = make_node("n").capacity({key: limit, "cpu": "9", "memory": "9Gi", "pods": "99"}).obj()
    return [node, *(make_pod(f"x{i}").ebs(f"vol-{i}").node("n").obj() for i in range(used))]


@pytest.mark.parametrize("prefix", ["attachable-volumes", "storage-attach-limits"])
def test_published_limits_count_under_both_prefixes_with_the_gate_on_off_and_on(
    prefix: str,
) -> None:
    objects, pod = published(f"{prefix}-aws-ebs", "2", used=2), make_pod("p").ebs("new").obj()
    seen = [feasible(objects, pod, profile(AttachVolumeLimit=on)) for on in (True, False, True)]
    assert seen == [set(), {"n"}, set()]


@pytest.mark.parametrize("prefix", ["attachable-volumes", "storage-attach-limits"])
def test_one_place_below_the_published_limit_is_free(prefix: str) -> None:
    objects, pod = published(f"{prefix}-aws-ebs", "2", used=1), make_pod("p").ebs("new").obj()
    assert feasible(objects, pod, profile()) == {"n"}


def test_a_published_limit_of_a_csi_driver_counts_where_the_csinode_has_none() -> None:
    key = f"attachable-volumes-csi-{EBS}"
    node = make_node("n").capacity({key: "1"}).obj()
    csinode = make_csinode("n").driver(EBS).obj()
    assert limit_of(EBS, node, csinode, profile().rules) == Limit(1, LimitSource.ALLOCATABLE, key)
    without = profile(AttachVolumeLimit=False)
    assert limit_of(EBS, node, csinode, without.rules) == Limit(None, LimitSource.NONE)


def test_the_csinode_wins_over_what_the_node_publishes() -> None:
    node = make_node("n").capacity({"attachable-volumes-aws-ebs": "1"}).obj()
    limit = limit_of(EBS, node, make_csinode("n").driver(EBS, 7).obj(), profile().rules)
    assert limit == Limit(7, LimitSource.CSINODE)


@pytest.mark.parametrize(
    ("plugin", "instance_type", "count"),
    [
        (IN_TREE_EBS, "", 39),
        (IN_TREE_EBS, "m4.large", 39),
        (IN_TREE_EBS, "m5.large", 25),
        (IN_TREE_EBS, "c5d.xlarge", 25),
        (IN_TREE_EBS, "t3.micro", 25),
        (IN_TREE_EBS, "z1d.metal", 25),
        (IN_TREE_EBS, "ml.t3.medium", 25),
        (IN_TREE_EBS, "x.c5.large", 39),
        ("kubernetes.io/gce-pd", "", 16),
        ("kubernetes.io/azure-disk", "", 16),
        ("kubernetes.io/cinder", "", 256),
    ],
)
def test_the_fallback_table_speaks_where_nobody_else_does(
    plugin: str, instance_type: str, count: int
) -> None:
    node = make_node("n").label(INSTANCE_TYPE, instance_type).obj()
    if not instance_type:
        node = make_node("n").obj()
    for on in (True, False):
        found = limit_of(plugin, node, None, profile(AttachVolumeLimit=on).rules)
        assert found == Limit(count, LimitSource.FALLBACK)


def test_the_environment_replaces_the_table_but_not_what_a_node_publishes() -> None:
    rules = profile(override=5).rules
    assert limit_of(IN_TREE_EBS, make_node("n").obj(), None, rules) == Limit(
        5, LimitSource.OVERRIDE
    )
    node = make_node("n").capacity({"attachable-volumes-aws-ebs": "2"}).obj()
    assert limit_of(IN_TREE_EBS, node, None, rules).count == 2


@pytest.mark.parametrize("written", ["-5", "1500m", "-1Ki", "0.5"])
@pytest.mark.parametrize("prefix", ["attachable-volumes", "storage-attach-limits"])
def test_what_cannot_be_a_limit_is_passed_over_and_never_taken_for_any_number(
    written: str, prefix: str
) -> None:
    node = make_node("n").capacity({f"{prefix}-aws-ebs": written}).obj()
    registered = make_csinode("n").driver(EBS).obj()
    for driver, csinode in ((IN_TREE_EBS, None), (EBS, registered)):
        assert limit_of(driver, node, csinode, profile().rules) == Limit(39, LimitSource.FALLBACK)
    other = "disk.example.com"
    key = f"{prefix}-csi-{other}"
    node = make_node("n").capacity({key: written}).obj()
    registered = make_csinode("n").driver(other).obj()
    found = limit_of(other, node, registered, profile().rules)
    assert found == Limit(0, LimitSource.UNREADABLE, key)
    off = limit_of(other, node, registered, profile(AttachVolumeLimit=False).rules)
    assert off == Limit(None, LimitSource.NONE)


def test_a_good_limit_counts_beside_a_bad_one() -> None:
    amounts = {"attachable-volumes-aws-ebs": "-5", "storage-attach-limits-aws-ebs": "3"}
    node = make_node("n").capacity(amounts).obj()
    assert limit_of(IN_TREE_EBS, node, None, profile().rules).count == 3


@pytest.mark.parametrize("prefix", ["attachable-volumes-", "storage-attach-limits-"])
def test_a_csi_driver_is_limited_under_both_prefixes_however_long_its_name(prefix: str) -> None:
    for driver in ("disk.example.com", "d" * 23 + ".example.com" * 3):
        key = csi_attach_limit_key(driver, prefix)
        node, csinode = make_node("n").capacity({key: "3"}).obj(), make_csinode("n").driver(driver)
        found = limit_of(driver, node, csinode.obj(), profile().rules)
        assert found == Limit(3, LimitSource.ALLOCATABLE, key)


def test_with_the_gate_off_the_table_is_what_is_left_of_a_published_limit() -> None:
    node = make_node("n").capacity({"attachable-volumes-aws-ebs": "2"}).obj()
    rules = profile(AttachVolumeLimit=False).rules
    assert limit_of(IN_TREE_EBS, node, None, rules) == Limit(39, LimitSource.FALLBACK)


def test_kubernetes_today_has_no_limits_but_those_of_csinodes() -> None:
    node = make_node("n").capacity({"attachable-volumes-aws-ebs": "2"}).obj()
    rules = Profile.kubernetes().rules
    assert limit_of(IN_TREE_EBS, node, None, rules) == Limit(None, LimitSource.NONE)


DRIVER = "ebs.csi.aws.com"


def test_a_csi_volume_needs_its_driver_next_to_a_migrated_one_that_does_not() -> None:
    driver = make_csidriver(DRIVER).prevent_if_missing().obj()
    volume = make_pv("v").storage_class("x").bound_to("c").csi(DRIVER, "h").obj()
    claim = make_pvc("c").storage_class("x").volume("v").obj()
    profile = Profile.kubernetes(volume_limit_scaling=True)
    snapshot = Snapshot([node(), driver, volume, claim], profile=profile)
    assert snapshot.decide(make_pod("migrated").ebs("vol-1").obj()).node == "n1"
    assert snapshot.decide(make_pod("both").claim("c").ebs("vol-1").obj()).node is None


# -- still attached ----------------------------------------------------------------------------


def still_attached() -> list[KubeObject]:
    """Two nodes with room for one volume, each with one attached: the pod's, and another."""
    nodes = [make_node(name).obj() for name in ("own", "other")]
    drivers = [make_csinode(name).driver(EBS, 1).obj() for name in ("own", "other")]
    volumes = [make_pv(name).csi(EBS).bound_to(name).obj() for name in ("c", "d")]
    claims = [make_pvc(name).volume(name).obj() for name in ("c", "d")]
    attachments = [
        make_attachment("va-c", EBS, "own", "c").attached().obj(),
        make_attachment("va-d", EBS, "other", "d").attached().obj(),
    ]
    return [*nodes, *drivers, *volumes, *claims, *attachments]


def test_a_volume_that_is_still_attached_takes_no_second_slot_for_its_own_pod() -> None:
    assert feasible(still_attached(), NEEDS_DRIVER, profile()) == {"own"}


@pytest.mark.parametrize(
    "rules",
    [profile(VolumeLimitScaling=False), profile(MissingDriver.OPT_IN), Profile.kubernetes()],
)
def test_a_volume_that_is_still_attached_counts_again_for_kube_scheduler(rules: Profile) -> None:
    assert feasible(still_attached(), NEEDS_DRIVER, rules) == set()


def test_a_volume_that_was_detached_counts_again() -> None:
    snapshot = Snapshot(still_attached(), profile=profile())
    assert snapshot.decide(NEEDS_DRIVER).node == "own"
    snapshot.delete(VolumeAttachment, "va-c")
    snapshot.put(make_attachment("va-e", EBS, "own", "d").attached().obj())
    assert snapshot.decide(NEEDS_DRIVER).node is None


def test_no_node_is_added_for_a_volume_that_is_still_attached_to_a_node() -> None:
    snapshot = Snapshot(still_attached(), profile=profile())
    groups = group_pods(snapshot, [NEEDS_DRIVER])
    placed, left = fill_all(snapshot, groups)
    assert [(pod.name, node) for pod, node in placed] == [("p", "own")]
    assert not any(group.pods for group in left)


@pytest.mark.parametrize(
    ("shipped", "proposed"), [("5", "3"), ("3", "5"), ("3", "many"), ("x", "3")]
)
def test_of_two_limits_that_a_node_publishes_the_lower_holds(shipped: str, proposed: str) -> None:
    keys = (csi_attach_limit_key(EBS, prefix) for prefix in ATTACH_LIMIT_PREFIXES)
    published = dict(zip(keys, (shipped, proposed), strict=True))
    node = make_node("n").obj()
    node.status.allocatable |= published
    assert limit_of(EBS, node, None, profile().rules).count == 3
