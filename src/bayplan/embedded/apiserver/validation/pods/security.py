"""Validation of security contexts, sysctls and operating systems.

Fields of one operating system are forbidden for pods of another.
"""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    not_supported,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import (
    descending_problems,
    name_problems,
    subdomain,
)
from bayplan.embedded.apiserver.validation.pods.choices import (
    DISALLOWED,
    choice,
    containers_of,
    id_problems,
)

_MAX_SPEC_LENGTH = 64 * 1024
_MAX_DOMAIN_LENGTH = 256
_MAX_USER_LENGTH = 104
_NET_BIOS = re.compile(r"[^\\/:*?\"<>|.][^\\/:*?\"<>|]{0,14}")
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NOT_IN_USERS = re.compile(r"[\"/\\:;|=,+*?<>@\[\]]")
_LINUX_OF_PODS = (
    "appArmorProfile", "seLinuxOptions", "hostUsers", "hostPID", "hostIPC", "seccompProfile",
    "fsGroup", "fsGroupChangePolicy", "sysctls", "shareProcessNamespace", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_LINUX_OF_CONTAINERS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
    "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser",
    "runAsGroup",
)  # fmt: skip
_OF_THE_SPEC = {
    "hostUsers": None, "hostPID": False, "hostIPC": False, "shareProcessNamespace": None,
}  # fmt: skip
"""Spec fields that are internally in the security context, and their unset values."""


def windows_option_problems(options: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of Windows options."""
    found: list[FieldCause] = []
    name, spec = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    if name is not None:
        found += name_problems(subdomain, name, f"{at}.gmsaCredentialSpecName")
    if spec is not None:
        detail = "" if spec else "gmsaCredentialSpec cannot be an empty string"
        if len(spec) > _MAX_SPEC_LENGTH:
            detail = "gmsaCredentialSpec size must be under 64 KiB"
        found += [bad_value(f"{at}.gmsaCredentialSpec", spec, detail)] if detail else []
    user = options.get("runAsUserName")
    if user is not None:
        found += [bad_value(f"{at}.runAsUserName", user, detail) for detail in _user_name(user)]
    return found


def _user_name(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, slash, user = name.rpartition("\\")
    return (_domain_problems(domain) if slash else []) + _user_problems(user)


def _domain_problems(domain: str) -> list[str]:
    found = []
    if len(domain) >= _MAX_DOMAIN_LENGTH:
        found.append(f"runAsUserName's Domain length must be under {_MAX_DOMAIN_LENGTH} characters")
    if not (_NET_BIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
        found.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    return found


def _user_problems(user: str) -> list[str]:
    found = []
    if not user:
        found.append("runAsUserName's User cannot be empty")
    elif len(user) > _MAX_USER_LENGTH:
        found.append(
            f"runAsUserName's User length must not be longer than {_MAX_USER_LENGTH} characters"
        )
    if user and not user.strip(". "):
        found.append("runAsUserName's User cannot contain only periods or spaces")
    if _NOT_IN_USERS.search(user):
        found.append(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        )
    return found


def host_process_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Require all containers or none to be Windows HostProcess containers."""
    whole = _host_process(spec)
    found: list[FieldCause] = []
    count, total = 0, 0
    for container, place in containers_of(spec, at):
        total += 1
        own = _host_process(container)
        if whole is not None and own is not None and whole != own:
            shown = str(whole).lower()
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            field = f"{place}.securityContext.windowsOptions.hostProcess"
            found.append(bad_value(field, own, detail))
        count += bool(whole if own is None else own)
    if not count:
        return found
    if count != total:
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess "
        )
        found.append(bad_value(at, "", f"{detail}containers"))
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        found.append(bad_value(f"{at}.hostNetwork", False, detail))
    return [*found, forbidden_field(at, f"hostProcess containers are {DISALLOWED}")]


def _host_process(owner: JsonObject) -> bool | None:
    options = (owner.get("securityContext") or {}).get("windowsOptions") or {}
    value: bool | None = options.get("hostProcess")
    return value


def system_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a pod with `spec.os`."""
    if spec.get("os") is None:
        return []
    name = spec["os"].get("name") or ""
    if not name:
        return [required(f"{at}.os.name")]
    if name == "linux":
        return _linux_problems(spec, at)
    if name == "windows":
        return _windows_problems(spec, at)
    return [not_supported(f"{at}.os", name, ("linux", "windows"))]


def _linux_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    detail = "windows options cannot be set for a linux pod"
    owners = [(spec, at), *containers_of(spec, at)]
    return [
        forbidden_field(f"{place}.securityContext.windowsOptions", detail)
        for owner, place in owners
        if (owner.get("securityContext") or {}).get("windowsOptions") is not None
    ]


def _windows_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    detail = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    found = []
    for name in _LINUX_OF_PODS:
        if name in _OF_THE_SPEC:
            if spec.get(name) not in (None, _OF_THE_SPEC[name]):
                found.append(forbidden_field(f"{at}.{name}", detail))
        elif context.get(name) is not None:
            found.append(forbidden_field(f"{at}.securityContext.{name}", detail))
    for container, place in containers_of(spec, at):
        context = container.get("securityContext") or {}
        found += [
            forbidden_field(f"{place}.securityContext.{name}", detail)
            for name in _LINUX_OF_CONTAINERS
            if context.get(name) is not None
        ]
    return found


PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_PROFILE_LENGTH = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in (
        "sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb",
        "msgmni", "msg",
    )
)  # fmt: skip


def pod_security_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a pod's security context."""
    context, place = spec.get("securityContext") or {}, f"{at}.securityContext"
    found: list[FieldCause] = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        found += id_problems(context.get(name), f"{place}.{name}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        found += id_problems(group, f"{place}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(bad_value(f"{place}.shareProcessNamespace", True, detail))
    found += _sysctl_problems(context.get("sysctls") or [], f"{place}.sysctls", spec)
    policy = context.get("fsGroupChangePolicy")
    found += choice(policy, f"{place}.fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    found += _profile_problems(context, place)
    groups = context.get("supplementalGroupsPolicy")
    found += choice(groups, f"{place}.supplementalGroupsPolicy", ("Merge", "Strict"))
    label = context.get("seLinuxChangePolicy")
    return found + choice(label, f"{place}.seLinuxChangePolicy", ("Recursive",))


def _profile_problems(context: JsonObject, at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if context.get("seccompProfile") is not None:
        found += _seccomp_problems(context["seccompProfile"], f"{at}.seccompProfile")
    if context.get("windowsOptions") is not None:
        found += windows_option_problems(context["windowsOptions"], f"{at}.windowsOptions")
    if context.get("appArmorProfile") is not None:
        found += app_armor_problems(context["appArmorProfile"], f"{at}.appArmorProfile")
    return found


def _sysctl_problems(sysctls: list[JsonObject], at: str, spec: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    names: set[str] = set()
    for index, one in enumerate(sysctls):
        name, place = one.get("name") or "", f"{at}[{index}].name"
        if not name:
            found.append(required(place))
        elif len(name) > 253 or not re.match(_SYSCTL.replace("$", r"\Z"), name):
            detail = f"must have at most 253 characters and match regex {_SYSCTL}"
            found.append(bad_value(place, name, detail))
        elif name in names:
            found.append(duplicate(place, name))
        found += _host_sysctl_problems(name, place, spec)
        names.add(name)
    return found


def _host_sysctl_problems(name: str, at: str, spec: JsonObject) -> list[FieldCause]:
    """Refuse sysctls of a namespace that the pod shares with the host."""
    parts = re.split(r"[./]", name, maxsplit=1)
    spelled = name.replace("/", ".") if len(parts) > 1 and "/" in name else name
    if spec.get("hostNetwork") and spelled.startswith("net."):
        return [bad_value(at, name, "may not be specified when 'hostNetwork' is true")]
    if spec.get("hostIPC") and (spelled in _IPC_SYSCTLS or spelled.startswith("fs.mqueue.")):
        return [bad_value(at, name, "may not be specified when 'hostIPC' is true")]
    return []


def _seccomp_problems(profile: JsonObject, at: str) -> list[FieldCause]:
    kind, own = profile.get("type") or "", profile.get("localhostProfile")
    found: list[FieldCause] = []
    if not kind:
        found.append(required(f"{at}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILES:
        found.append(not_supported(f"{at}.type", kind, PROFILES))
    if kind == "Localhost":
        if own is None:
            detail = "must be set when seccomp type is Localhost"
            return [*found, required(f"{at}.localhostProfile", detail)]
        return found + descending_problems(own, f"{at}.localhostProfile")
    if own is not None:
        detail = "can only be set when seccomp type is Localhost"
        shown = internal_form(profile, "core.SeccompProfile")
        found.append(bad_value(f"{at}.localhostProfile", shown, detail))
    return found


def app_armor_problems(profile: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of an AppArmor profile."""
    kind, own, field = (
        profile.get("type") or "",
        profile.get("localhostProfile"),
        f"{at}.localhostProfile",
    )
    if not kind:
        return [required(f"{at}.type", "type is required when appArmorProfile is set")]
    if kind not in PROFILES:
        return [not_supported(f"{at}.type", kind, PROFILES)]
    if kind != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [] if own is None else [bad_value(field, own, detail)]
    found = []
    if own is not None and own.strip() != own:
        found.append(bad_value(field, own, "must not be padded with whitespace"))
    elif not own:
        found.append(required(field, "must be set when AppArmor type is Localhost"))
    if len(own or "") > _MAX_PROFILE_LENGTH:
        found.append(too_long(field, _MAX_PROFILE_LENGTH))
    return found


def container_security_problems(context: JsonObject, at: str, host_users: bool) -> list[FieldCause]:
    """Return the problems of a container's security context."""
    found = []
    if context.get("privileged"):
        found.append(forbidden_field(f"{at}.privileged", DISALLOWED))
    found += id_problems(context.get("runAsUser"), f"{at}.runAsUser")
    found += id_problems(context.get("runAsGroup"), f"{at}.runAsGroup")
    mount = context.get("procMount")
    found += choice(mount, f"{at}.procMount", ("Default", "Unmasked"))
    if host_users and mount == "Unmasked":
        detail = "`hostUsers` must be false to use `Unmasked`"
        found.append(bad_value(f"{at}.procMount", mount, detail))
    if context.get("seccompProfile") is not None:
        found += _seccomp_problems(context["seccompProfile"], f"{at}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        found += _escalation_problems(context, at)
    rest = {name: context.get(name) for name in ("windowsOptions", "appArmorProfile")}
    return found + _profile_problems(rest, at)


def _escalation_problems(context: JsonObject, at: str) -> list[FieldCause]:
    head = "cannot set `allowPrivilegeEscalation` to false and"
    whys = [f"{head} `privileged` to true"] if context.get("privileged") else []
    added = (context.get("capabilities") or {}).get("add") or ()
    whys += [f"{head} `capabilities.Add` CAP_SYS_ADMIN" for one in added if one == "CAP_SYS_ADMIN"]
    return [
        bad_value(at, internal_form(context, "core.SecurityContext"), detail) for detail in whys
    ]


def host_user_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Refuse host namespaces for pods with their own user namespace."""
    if spec.get("hostUsers") is not False:
        return []
    detail = "when `hostUsers` is false"
    names = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    found = [
        forbidden_field(f"{at}.{shown}", detail) for name, shown in names.items() if spec.get(name)
    ]
    return found + [
        forbidden_field(f"{place}.volumeDevices", detail)
        for container, place in containers_of(spec, at)
        if container.get("volumeDevices")
    ]
