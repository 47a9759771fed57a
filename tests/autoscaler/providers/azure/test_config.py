"""The cloud-config and variables of Cluster Autoscaler, and the flags that select scale sets."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bayplan.autoscaler.providers.azure.config import IdentityKind, read_azure_config
from bayplan.autoscaler.providers.azure.selection import ScaleSetSizes, read_selection
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.base.configfiles import ConfigFileError

SECRET = "hunter2-is-secret"
FILE = {
    "cloud": "AzurePublicCloud",
    "tenantId": "tenant",
    "subscriptionId": "subscription",
    "resourceGroup": " MC_Group ",
    "vmType": "vmss",
    "aadClientId": "client",
    "aadClientSecret": SECRET,
    "location": "westeurope",
    "cloudProviderBackoff": True,
    "deploymentParameters": {"x": 1},
}


def written(folder: Path, **fields: object) -> Path:
    path = folder / "azure.json"
    path.write_text(json.dumps({**FILE, **fields}))
    return path


def test_the_file_of_cluster_autoscaler_is_read(tmp_path: Path) -> None:
    config = read_azure_config(written(tmp_path), {})
    assert (config.subscription, config.resource_group) == ("subscription", "MC_Group")
    assert config.cloud.endpoint == "https://management.azure.com"
    assert config.identity.kind is IdentityKind.SECRET
    assert (config.identity.tenant, config.identity.client) == ("tenant", "client")
    assert config.identity.secret == SECRET
    assert config.scale_sets.startswith("/subscriptions/subscription/resourceGroups/mc_group/")


def test_a_secret_is_in_no_representation(tmp_path: Path) -> None:
    config = read_azure_config(written(tmp_path), {})
    assert SECRET not in repr(config)
    assert SECRET not in repr(config.identity)
    assert SECRET in str(asdict(config.identity))


@pytest.mark.parametrize(
    ("fields", "kind", "client", "file"),
    [
        ({"useManagedIdentityExtension": True}, IdentityKind.MANAGED, "", ""),
        (
            {"useManagedIdentityExtension": True, "userAssignedIdentityID": "mine"},
            IdentityKind.MANAGED,
            "mine",
            "",
        ),
        (
            {"useWorkloadIdentityExtension": True, "aadFederatedTokenFile": "/token"},
            IdentityKind.WORKLOAD,
            "client",
            "/token",
        ),
        (
            {"useFederatedWorkloadIdentityExtension": True, "aadFederatedTokenFile": "/token"},
            IdentityKind.WORKLOAD,
            "client",
            "/token",
        ),
        (
            {"aadClientSecret": "", "aadClientCertPath": "/cert", "aadClientCertPassword": "p"},
            IdentityKind.CERTIFICATE,
            "client",
            "/cert",
        ),
    ],
)
def test_every_kind_of_credential_can_be_configured(
    tmp_path: Path, fields: dict[str, object], kind: IdentityKind, client: str, file: str
) -> None:
    identity = read_azure_config(written(tmp_path, **fields), {}).identity
    assert (identity.kind, identity.client, identity.file) == (kind, client, file)


def test_variables_override_the_file_and_suffice_without_one(tmp_path: Path) -> None:
    variables = {
        "ARM_SUBSCRIPTION_ID": "other",
        "ARM_RESOURCE_GROUP": "group",
        "ARM_CLOUD": "AzureChinaCloud",
        "ARM_TENANT_ID": "old",
        "AZURE_TENANT_ID": "new",
        "AZURE_CLIENT_ID": "id",
        "AZURE_FEDERATED_TOKEN_FILE": "/var/run/token",
        "ARM_USE_WORKLOAD_IDENTITY_EXTENSION": "true",
        "AZURE_ENABLE_FORCE_DELETE": "1",
    }
    for path in (None, written(tmp_path)):
        config = read_azure_config(path, variables)
        assert (config.subscription, config.resource_group) == ("other", "group")
        assert config.cloud.endpoint == "https://management.chinacloudapi.cn"
        assert config.identity.kind is IdentityKind.WORKLOAD
        assert (config.identity.tenant, config.identity.client) == ("new", "id")
        assert config.force_delete


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"subscriptionId": ""}, "subscriptionId is not set"),
        ({"resourceGroup": ""}, "resourceGroup is not set"),
        ({"resourceGroup": "a/b"}, "resourceGroup must be a name or an id, not a path"),
        ({"vmType": "standard"}, "vmType must be vmss, not 'standard'"),
        ({"cloud": "AzureMoonCloud"}, "cloud 'AzureMoonCloud' is not one of AzurePublicCloud"),
        ({"tenantId": ""}, "tenantId is not set"),
        ({"aadClientId": ""}, "aadClientId is not set"),
        ({"aadClientSecret": ""}, "aadClientSecret or aadClientCertPath is not set"),
        ({"authMethod": "cli"}, "authMethod must be principal"),
        ({"useWorkloadIdentityExtension": True}, "aadFederatedTokenFile is not set"),
        (
            {"useWorkloadIdentityExtension": True, "useManagedIdentityExtension": True},
            "set only one of useManagedIdentityExtension and useWorkloadIdentityExtension",
        ),
        ({"resourceManagerEndpoint": "http://x"}, "resourceManagerEndpoint must begin with https"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(
    tmp_path: Path, fields: dict[str, object], problem: str
) -> None:
    with pytest.raises(ProviderOptionError, match=problem) as refused:
        read_azure_config(written(tmp_path, **fields), {})
    assert SECRET not in str(refused.value)


def test_a_file_that_cannot_be_read_names_the_field_and_no_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match="aadClientSecret") as refused:
        read_azure_config(written(tmp_path, aadClientSecret=[SECRET]), {})
    assert SECRET not in str(refused.value)
    with pytest.raises(ProviderOptionError, match="ARM_USE_MANAGED_IDENTITY_EXTENSION must be"):
        read_azure_config(written(tmp_path), {"ARM_USE_MANAGED_IDENTITY_EXTENSION": "maybe"})


@pytest.mark.parametrize(
    ("nodes", "discovery", "problem"),
    [
        ((), (), "set --nodes or --node-group-auto-discovery"),
        (("workers",), (), "--nodes 'workers': must be MIN:MAX:NAME"),
        (("1:x:workers",), (), "must be MIN:MAX:NAME"),
        (("3:2:workers",), (), "3 is more than 2"),
        (("1:2:a", "1:3:A"), (), "'A' is listed twice"),
        ((), ("asg:tag=x",), "must be label:KEY=VALUE"),
        ((), ("label:",), "must be label:KEY=VALUE"),
        ((), ("label:a",), "must be label:KEY=VALUE"),
        ((), ("label:a=b,,c=d",), "must be label:KEY=VALUE"),
        ((), ("label:min=1,max=3",), "must have a tag other than min and max"),
        ((), ("label:a=b,min=x",), "min must be a whole number"),
        ((), ("label:a=b,min=4,max=3",), "4 is more than 3"),
    ],
)
def test_flags_that_select_nothing_sensible_are_refused(
    nodes: tuple[str, ...], discovery: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ProviderOptionError, match=problem):
        read_selection(nodes, discovery)


@pytest.mark.parametrize(
    ("discovery", "tags", "sizes"),
    [
        (("label:a=b",), {"a": "b", "min": "1", "max": "3"}, ScaleSetSizes(1, 3)),
        (("label:a=b",), {"a": "c", "min": "1", "max": "3"}, None),
        (("label:a=b,c=d",), {"a": "b", "min": "1", "max": "3"}, None),
        (("label:a=b", "label:c=d"), {"a": "b", "min": "1", "max": "3"}, None),
        (("label:a=b", "label:a=c"), {"a": "c", "min": "1", "max": "3"}, None),
        (("label:a=b,min=2,max=5",), {"a": "b"}, ScaleSetSizes(2, 5)),
        (("label:a=b,min=2,max=5",), {"a": "b", "min": "0"}, ScaleSetSizes(0, 5)),
        (("label:a=b,max=5", "label:a=b,min=1,max=4"), {"a": "b"}, ScaleSetSizes(1, 4)),
        (("label:a=b",), {"a": "b", "max": "3"}, "tag min: is not set, and neither is it in"),
        (("label:a=b",), {"a": "b", "min": "1", "max": "x"}, "tag max: 'x' must be a whole"),
        (("label:a=b",), {"a": "b", "min": "4", "max": "3"}, "4 is more than 3"),
    ],
)
def test_a_discovered_scale_set_has_the_sizes_of_its_tags_or_of_the_flag(
    discovery: tuple[str, ...], tags: dict[str, str], sizes: ScaleSetSizes | str | None
) -> None:
    found = read_selection((), discovery).sizes_of("workers", tags)
    if isinstance(sizes, str):
        assert isinstance(found, str)
        assert sizes in found
    else:
        assert found == sizes


def test_a_name_wins_over_tags_and_has_no_case() -> None:
    selection = read_selection(("0:9:Workers",), ("label:a=b",))
    tags = {"a": "b", "min": "1", "max": "3"}
    assert selection.sizes_of("workers", tags) == ScaleSetSizes(0, 9)
    assert selection.sizes_of("others", tags) == ScaleSetSizes(1, 3)
    assert selection.sizes_of("others", {}) is None
