"""Pods for Windows, and what pods for one system may not say of the other."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import name_problems, subdomain
from bayplan.embedded.apiserver.validation.pods.choices import DISALLOWED, containers_of

_LONGEST_SPEC = 64 * 1024
_LONGEST_DOMAIN = 256
_LONGEST_USER = 104
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
"""What upstream keeps in the security context and the API keeps beside it, and when it is unset."""


def windows_option_problems(options: JsonObject, at: str) -> list[Cause]:
    """What is wrong with what a pod or a container says for Windows."""
    found: list[Cause] = []
    name, spec = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    if name is not None:
        found += name_problems(subdomain, name, f"{at}.gmsaCredentialSpecName")
    if spec is not None:
        why = "" if spec else "gmsaCredentialSpec cannot be an empty string"
        if len(spec) > _LONGEST_SPEC:
            why = "gmsaCredentialSpec size must be under 64 KiB"
        found += [bad_value(f"{at}.gmsaCredentialSpec", spec, why)] if why else []
    user = options.get("runAsUserName")
    if user is not None:
        found += [bad_value(f"{at}.runAsUserName", user, why) for why in _user_name(user)]
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
    if len(domain) >= _LONGEST_DOMAIN:
        found.append(f"runAsUserName's Domain length must be under {_LONGEST_DOMAIN} characters")
    if not (_NET_BIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
        found.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    return found


def _user_problems(user: str) -> list[str]:
    found = []
    if not user:
        found.append("runAsUserName's User cannot be empty")
    elif len(user) > _LONGEST_USER:
        found.append(
            f"runAsUserName's User length must not be longer than {_LONGEST_USER} characters"
        )
    if user and not user.strip(". "):
        found.append("runAsUserName's User cannot contain only periods or spaces")
    if _NOT_IN_USERS.search(user):
        found.append(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        )
    return found


def host_process_problems(spec: JsonObject, at: str) -> list[Cause]:
    """Containers that run as processes of a Windows host do so all together."""
    whole = _host_process(spec)
    found: list[Cause] = []
    count, total = 0, 0
    for container, place in containers_of(spec, at):
        total += 1
        own = _host_process(container)
        if whole is not None and own is not None and whole != own:
            shown = str(whole).lower()
            why = f"pod hostProcess value must be identical if both are specified, was {shown}"
            field = f"{place}.securityContext.windowsOptions.hostProcess"
            found.append(bad_value(field, own, why))
        count += bool(whole if own is None else own)
    if not count:
        return found
    if count != total:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess "
        found.append(bad_value(at, "", f"{why}containers"))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        found.append(bad_value(f"{at}.hostNetwork", False, why))
    return [*found, forbidden_field(at, f"hostProcess containers are {DISALLOWED}")]


def _host_process(owner: JsonObject) -> bool | None:
    options = (owner.get("securityContext") or {}).get("windowsOptions") or {}
    said: bool | None = options.get("hostProcess")
    return said


def system_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a pod that says for which system it is."""
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


def _linux_problems(spec: JsonObject, at: str) -> list[Cause]:
    why = "windows options cannot be set for a linux pod"
    owners = [(spec, at), *containers_of(spec, at)]
    return [
        forbidden_field(f"{place}.securityContext.windowsOptions", why)
        for owner, place in owners
        if (owner.get("securityContext") or {}).get("windowsOptions") is not None
    ]


def _windows_problems(spec: JsonObject, at: str) -> list[Cause]:
    why = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    found = []
    for name in _LINUX_OF_PODS:
        if name in _OF_THE_SPEC:
            if spec.get(name) not in (None, _OF_THE_SPEC[name]):
                found.append(forbidden_field(f"{at}.{name}", why))
        elif context.get(name) is not None:
            found.append(forbidden_field(f"{at}.securityContext.{name}", why))
    for container, place in containers_of(spec, at):
        context = container.get("securityContext") or {}
        found += [
            forbidden_field(f"{place}.securityContext.{name}", why)
            for name in _LINUX_OF_CONTAINERS
            if context.get(name) is not None
        ]
    return found
