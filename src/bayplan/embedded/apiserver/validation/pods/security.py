"""Security contexts of pods and containers on Linux, and the sysctls they set."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import Cause
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
from bayplan.embedded.apiserver.validation.paths import descending_problems
from bayplan.embedded.apiserver.validation.pods.choices import (
    DISALLOWED,
    choice,
    containers_of,
    id_problems,
)
from bayplan.embedded.apiserver.validation.pods.windows import windows_option_problems

PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in (
        "sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb",
        "msgmni", "msg",
    )
)  # fmt: skip


def pod_security_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with what a pod says of its containers' rights."""
    context, place = spec.get("securityContext") or {}, f"{at}.securityContext"
    found: list[Cause] = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        found += id_problems(context.get(name), f"{place}.{name}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        found += id_problems(group, f"{place}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(bad_value(f"{place}.shareProcessNamespace", True, why))
    found += _sysctl_problems(context.get("sysctls") or [], f"{place}.sysctls", spec)
    policy = context.get("fsGroupChangePolicy")
    found += choice(policy, f"{place}.fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    found += _profile_problems(context, place)
    groups = context.get("supplementalGroupsPolicy")
    found += choice(groups, f"{place}.supplementalGroupsPolicy", ("Merge", "Strict"))
    label = context.get("seLinuxChangePolicy")
    return found + choice(label, f"{place}.seLinuxChangePolicy", ("Recursive",))


def _profile_problems(context: JsonObject, at: str) -> list[Cause]:
    found: list[Cause] = []
    if context.get("seccompProfile") is not None:
        found += _seccomp_problems(context["seccompProfile"], f"{at}.seccompProfile")
    if context.get("windowsOptions") is not None:
        found += windows_option_problems(context["windowsOptions"], f"{at}.windowsOptions")
    if context.get("appArmorProfile") is not None:
        found += app_armor_problems(context["appArmorProfile"], f"{at}.appArmorProfile")
    return found


def _sysctl_problems(sysctls: list[JsonObject], at: str, spec: JsonObject) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, one in enumerate(sysctls):
        name, place = one.get("name") or "", f"{at}[{index}].name"
        if not name:
            found.append(required(place))
        elif len(name) > 253 or not re.match(_SYSCTL.replace("$", r"\Z"), name):
            why = f"must have at most 253 characters and match regex {_SYSCTL}"
            found.append(bad_value(place, name, why))
        elif name in names:
            found.append(duplicate(place, name))
        found += _host_sysctl_problems(name, place, spec)
        names.add(name)
    return found


def _host_sysctl_problems(name: str, at: str, spec: JsonObject) -> list[Cause]:
    """A pod that lives in the host's namespace does not change it."""
    parts = re.split(r"[./]", name, maxsplit=1)
    spelled = name.replace("/", ".") if len(parts) > 1 and "/" in name else name
    if spec.get("hostNetwork") and spelled.startswith("net."):
        return [bad_value(at, name, "may not be specified when 'hostNetwork' is true")]
    if spec.get("hostIPC") and (spelled in _IPC_SYSCTLS or spelled.startswith("fs.mqueue.")):
        return [bad_value(at, name, "may not be specified when 'hostIPC' is true")]
    return []


def _seccomp_problems(profile: JsonObject, at: str) -> list[Cause]:
    kind, own = profile.get("type") or "", profile.get("localhostProfile")
    found: list[Cause] = []
    if not kind:
        found.append(required(f"{at}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILES:
        found.append(not_supported(f"{at}.type", kind, PROFILES))
    if kind == "Localhost":
        if own is None:
            why = "must be set when seccomp type is Localhost"
            return [*found, required(f"{at}.localhostProfile", why)]
        return found + descending_problems(own, f"{at}.localhostProfile")
    if own is not None:
        why = "can only be set when seccomp type is Localhost"
        shown = internal_form(profile, "core.SeccompProfile")
        found.append(bad_value(f"{at}.localhostProfile", shown, why))
    return found


def app_armor_problems(profile: JsonObject, at: str) -> list[Cause]:
    """What is wrong with an AppArmor profile."""
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
        why = "can only be set when AppArmor type is Localhost"
        return [] if own is None else [bad_value(field, own, why)]
    found = []
    if own is not None and own.strip() != own:
        found.append(bad_value(field, own, "must not be padded with whitespace"))
    elif not own:
        found.append(required(field, "must be set when AppArmor type is Localhost"))
    if len(own or "") > _LONGEST_PROFILE:
        found.append(too_long(field, _LONGEST_PROFILE))
    return found


def container_security_problems(context: JsonObject, at: str, host_users: bool) -> list[Cause]:
    """What is wrong with a container's rights."""
    found = []
    if context.get("privileged"):
        found.append(forbidden_field(f"{at}.privileged", DISALLOWED))
    found += id_problems(context.get("runAsUser"), f"{at}.runAsUser")
    found += id_problems(context.get("runAsGroup"), f"{at}.runAsGroup")
    mount = context.get("procMount")
    found += choice(mount, f"{at}.procMount", ("Default", "Unmasked"))
    if host_users and mount == "Unmasked":
        why = "`hostUsers` must be false to use `Unmasked`"
        found.append(bad_value(f"{at}.procMount", mount, why))
    if context.get("seccompProfile") is not None:
        found += _seccomp_problems(context["seccompProfile"], f"{at}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        found += _escalation_problems(context, at)
    rest = {name: context.get(name) for name in ("windowsOptions", "appArmorProfile")}
    return found + _profile_problems(rest, at)


def _escalation_problems(context: JsonObject, at: str) -> list[Cause]:
    head = "cannot set `allowPrivilegeEscalation` to false and"
    whys = [f"{head} `privileged` to true"] if context.get("privileged") else []
    added = (context.get("capabilities") or {}).get("add") or ()
    whys += [f"{head} `capabilities.Add` CAP_SYS_ADMIN" for one in added if one == "CAP_SYS_ADMIN"]
    return [bad_value(at, internal_form(context, "core.SecurityContext"), why) for why in whys]


def host_user_problems(spec: JsonObject, at: str) -> list[Cause]:
    """A pod with users of its own shares no other namespace with its host."""
    if spec.get("hostUsers") is not False:
        return []
    why = "when `hostUsers` is false"
    names = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    found = [
        forbidden_field(f"{at}.{shown}", why) for name, shown in names.items() if spec.get(name)
    ]
    return found + [
        forbidden_field(f"{place}.volumeDevices", why)
        for container, place in containers_of(spec, at)
        if container.get("volumeDevices")
    ]
