"""Objects as Go holds them, and their differences."""

from __future__ import annotations

from bayplan.embedded.apiserver.schema.internal import difference, internal_form


def test_inside_every_field_has_its_name_in_go_and_its_place() -> None:
    driver = {"name": "d", "nodeID": "n", "allocatable": {"count": 0}}
    shown = internal_form(driver, "storage.CSINodeDriver")
    assert list(shown.items()) == [
        ("Name", "d"),
        ("NodeID", "n"),
        ("TopologyKeys", None),
        ("Allocatable", {"Count": 0}),
    ]


def test_inside_the_host_s_namespaces_belong_to_a_pod_s_security_context() -> None:
    shown = internal_form({"containers": None, "hostPID": True}, "core.PodSpec")
    held = ("HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace")
    assert [shown["SecurityContext"][name] for name in held] == [False, True, False, None]
    assert "HostPID" not in shown


def test_a_difference_is_shown_line_by_line() -> None:
    old = {"accessModes": ["ReadWriteOnce"], "resources": {}, "volumeMode": "Filesystem"}
    new = {**old, "volumeMode": "Block"}
    assert difference(old, new, "core.PersistentVolumeClaimSpec").splitlines() == [
        "@@ -9,7 +9,7 @@",
        "  },",
        '  "VolumeName": "",',
        '  "StorageClassName": null,',
        '- "VolumeMode": "Filesystem",',
        '+ "VolumeMode": "Block",',
        '  "DataSource": null,',
        '  "DataSourceRef": null,',
        '  "VolumeAttributesClassName": null',
    ]
