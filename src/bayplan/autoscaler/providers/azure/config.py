"""The subscription, the resource group and the credential: the cloud-config of Cluster Autoscaler.

    {
      "cloud": "AzurePublicCloud",
      "tenantId": "…",
      "subscriptionId": "…",
      "resourceGroup": "…",
      "aadClientId": "…",
      "aadClientSecret": "…"
    }

The file is that of `--cloud-config`, in JSON or YAML; it may be the one of Azure's cloud controller
manager, so fields that are unknown here are ignored. Each environment variable of Cluster
Autoscaler overrides its field; without a file the variables are all there is.

The credential is a workload identity, a managed identity, a client secret or a client certificate.
Secrets are in no message and in no representation of a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.base.configfiles import parse, read_text

_TRUE, _FALSE = frozenset({"1", "t", "true"}), frozenset({"0", "f", "false"})
_PROVIDER = "--cloud-provider azure"


class CloudConfigFile(msgspec.Struct, rename="camel", kw_only=True):
    """The fields of a cloud-config that are read."""

    cloud: str = ""
    resource_manager_endpoint: str = ""
    tenant_id: str = ""
    subscription_id: str = ""
    resource_group: str = ""
    vm_type: str = ""
    auth_method: str = ""
    aad_client_id: str = ""
    aad_client_secret: str = ""
    aad_client_cert_path: str = ""
    aad_client_cert_password: str = ""
    aad_federated_token_file: str = ""
    use_managed_identity_extension: bool = False
    use_workload_identity_extension: bool | None = None
    use_federated_workload_identity_extension: bool = False
    user_assigned_identity_id: str = msgspec.field(default="", name="userAssignedIdentityID")
    enable_force_delete: bool = False


VARIABLES = {
    "ARM_CLOUD": "cloud",
    "ARM_RESOURCE_GROUP": "resource_group",
    "ARM_SUBSCRIPTION_ID": "subscription_id",
    "ARM_TENANT_ID": "tenant_id",
    "AZURE_TENANT_ID": "tenant_id",
    "ARM_CLIENT_ID": "aad_client_id",
    "AZURE_CLIENT_ID": "aad_client_id",
    "ARM_CLIENT_SECRET": "aad_client_secret",
    "ARM_CLIENT_CERT_PATH": "aad_client_cert_path",
    "ARM_CLIENT_CERT_PASSWORD": "aad_client_cert_password",
    "AZURE_FEDERATED_TOKEN_FILE": "aad_federated_token_file",
    "ARM_VM_TYPE": "vm_type",
    "ARM_USE_MANAGED_IDENTITY_EXTENSION": "use_managed_identity_extension",
    "ARM_USE_FEDERATED_WORKLOAD_IDENTITY_EXTENSION": "use_federated_workload_identity_extension",
    "ARM_USE_WORKLOAD_IDENTITY_EXTENSION": "use_workload_identity_extension",
    "ARM_USER_ASSIGNED_IDENTITY_ID": "user_assigned_identity_id",
    "AZURE_ENABLE_FORCE_DELETE": "enable_force_delete",
}
"""Environment variables and the field that each overrides; the last of several wins."""
_SWITCHES = frozenset(name for name in VARIABLES.values() if name.startswith(("use_", "enable_")))


@dataclass(frozen=True, slots=True)
class AzureCloud:
    """The addresses of an Azure cloud."""

    endpoint: str
    """Azure Resource Manager."""
    authority: str
    """The host that issues tokens."""


_PUBLIC = AzureCloud("https://management.azure.com", "login.microsoftonline.com")
_CHINA = AzureCloud("https://management.chinacloudapi.cn", "login.chinacloudapi.cn")
_GOVERNMENT = AzureCloud("https://management.usgovcloudapi.net", "login.microsoftonline.us")
CLOUDS = {
    "": _PUBLIC,
    "azurecloud": _PUBLIC,
    "azurepubliccloud": _PUBLIC,
    "azurechinacloud": _CHINA,
    "azureusgovernment": _GOVERNMENT,
    "azureusgovernmentcloud": _GOVERNMENT,
}


class IdentityKind(Enum):
    """What the credential is."""

    WORKLOAD = "workload identity"
    MANAGED = "managed identity"
    SECRET = "client secret"  # noqa: S105 - the kind of a credential
    CERTIFICATE = "client certificate"


@dataclass(frozen=True, slots=True)
class AzureIdentity:
    """The credential, as it is configured."""

    kind: IdentityKind
    tenant: str = ""
    client: str = ""
    """The client id; of a managed identity its client id or resource id, empty for the system's."""
    secret: str = field(default="", repr=False)
    """The client secret, or the certificate's password."""
    file: str = ""
    """The certificate, or the federated token."""


@dataclass(frozen=True, slots=True)
class AzureConfig:
    """The scale sets' subscription and resource group, and how to sign in."""

    subscription: str
    resource_group: str
    cloud: AzureCloud
    identity: AzureIdentity
    force_delete: bool = False
    """Delete instances without waiting for their shutdown."""

    @property
    def scale_sets(self) -> str:
        """The resource ID of scale sets without their name, as in nodes' provider IDs."""
        group = f"/subscriptions/{self.subscription}/resourceGroups/{self.resource_group.lower()}"
        return f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/"


def read_azure_config(path: Path | None, environment: Mapping[str, str]) -> AzureConfig:
    """Read the configuration; ConfigFileError or ProviderOptionError if it is invalid."""
    file = CloudConfigFile()
    if path is not None:
        file = parse(read_text(path), str(path), CloudConfigFile).value
    return _checked(_overridden(file, environment))


def _overridden(file: CloudConfigFile, environment: Mapping[str, str]) -> CloudConfigFile:
    """Return the file with the values of variables, without spaces around them."""
    values = msgspec.structs.asdict(file)
    for variable, name in VARIABLES.items():
        if text := environment.get(variable, "").strip():
            values[name] = _switch(variable, text) if name in _SWITCHES else text
    stripped = {k: v.strip() if isinstance(v, str) else v for k, v in values.items()}
    return msgspec.structs.replace(file, **stripped)


def _switch(variable: str, text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ProviderOptionError(f"{_PROVIDER}: {variable} must be true or false")
    return text.lower() in _TRUE


def _checked(file: CloudConfigFile) -> AzureConfig:
    for value, name in (
        (file.subscription_id, "subscriptionId"),
        (file.resource_group, "resourceGroup"),
    ):
        if not value:
            raise ProviderOptionError(f"{_PROVIDER}: {name} is not set in --cloud-config")
        if "/" in value or not value.isprintable():
            raise ProviderOptionError(f"{_PROVIDER}: {name} must be a name or an id, not a path")
    if file.vm_type.lower() not in {"", "vmss"}:
        raise ProviderOptionError(f"{_PROVIDER}: vmType must be vmss, not {file.vm_type[:40]!r}")
    identity = _identity(file)
    return AzureConfig(
        file.subscription_id,
        file.resource_group,
        _cloud(file),
        identity,
        file.enable_force_delete,
    )


def _cloud(file: CloudConfigFile) -> AzureCloud:
    known = CLOUDS.get(file.cloud.lower())
    if known is None:
        names = "AzurePublicCloud, AzureChinaCloud, AzureUSGovernmentCloud"
        raise ProviderOptionError(f"{_PROVIDER}: cloud {file.cloud[:40]!r} is not one of {names}")
    endpoint = file.resource_manager_endpoint.rstrip("/")
    if not endpoint:
        return known
    parts = urlsplit(endpoint)
    if parts.scheme != "https" or not parts.hostname:
        raise ProviderOptionError(f"{_PROVIDER}: resourceManagerEndpoint must begin with https://")
    return AzureCloud(endpoint, known.authority)


def _identity(file: CloudConfigFile) -> AzureIdentity:
    workload = file.use_workload_identity_extension
    if workload is None:
        workload = file.use_federated_workload_identity_extension
    if workload and file.use_managed_identity_extension:
        raise ProviderOptionError(
            f"{_PROVIDER}: set only one of useManagedIdentityExtension and"
            " useWorkloadIdentityExtension"
        )
    if file.use_managed_identity_extension:
        return AzureIdentity(IdentityKind.MANAGED, client=file.user_assigned_identity_id)
    _require(file.tenant_id, "tenantId")
    _require(file.aad_client_id, "aadClientId")
    return _workload(file) if workload else _principal(file)


def _workload(file: CloudConfigFile) -> AzureIdentity:
    _require(file.aad_federated_token_file, "aadFederatedTokenFile")
    return AzureIdentity(
        IdentityKind.WORKLOAD,
        file.tenant_id,
        file.aad_client_id,
        file=file.aad_federated_token_file,
    )


def _principal(file: CloudConfigFile) -> AzureIdentity:
    if file.auth_method not in {"", "principal"}:
        raise ProviderOptionError(f"{_PROVIDER}: authMethod must be principal")
    tenant, client = file.tenant_id, file.aad_client_id
    if file.aad_client_secret:
        return AzureIdentity(IdentityKind.SECRET, tenant, client, file.aad_client_secret)
    _require(file.aad_client_cert_path, "aadClientSecret or aadClientCertPath")
    return AzureIdentity(
        IdentityKind.CERTIFICATE,
        tenant,
        client,
        file.aad_client_cert_password,
        file.aad_client_cert_path,
    )


def _require(value: str, name: str) -> None:
    if not value:
        raise ProviderOptionError(f"{_PROVIDER}: {name} is not set in --cloud-config")
