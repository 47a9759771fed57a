"""A pod's names and addresses: host names, DNS, aliases, and ports on its host."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.addresses import address_problems
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import (
    name_problems,
    subdomain,
    too_many_letters,
    unmatched,
)

_MOST_SERVERS = 3
_MOST_SEARCHES = 32
_MOST_LETTERS = 2048
_LONGEST_HOST = 64
_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_LABEL}(\.{_LABEL})*"


def _search_domain(name: str) -> list[str]:
    found = [too_many_letters(253)] if len(name) > 253 else []
    if re.fullmatch(_SEARCH, name):
        return found
    why = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
        "'-' or '.', and must start and end with an alphanumeric character"
    )
    return [*found, unmatched(why, _SEARCH, "example.com")]


def dns_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with how a pod finds names."""
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(at, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{at}.nameservers", why)]
    if config is None:
        return []
    found = []
    if len(servers) > _MOST_SERVERS:
        why = f"must not have more than {_MOST_SERVERS} nameservers"
        found.append(bad_value(f"{at}.nameservers", servers, why))
    for index, server in enumerate(servers):
        found += address_problems(server, f"{at}.nameservers[{index}]")
    found += _search_problems(config.get("searches") or [], f"{at}.searches")
    return found + [
        required(f"{at}.options[{index}]", "must not be empty")
        for index, option in enumerate(config.get("options") or ())
        if not option.get("name")
    ]


def _search_problems(searches: list[str], at: str) -> list[Cause]:
    found = []
    if len(searches) > _MOST_SEARCHES:
        why = f"must not have more than {_MOST_SEARCHES} search paths"
        found.append(bad_value(at, searches, why))
    if len(" ".join(searches)) > _MOST_LETTERS:
        why = (
            f"must not have more than {_MOST_LETTERS} characters (including spaces) in the search "
            "list"
        )
        found.append(bad_value(at, searches, why))
    for index, search in enumerate(searches):
        if search != ".":
            found += name_problems(_search_domain, search.removesuffix("."), f"{at}[{index}]")
    return found


def host_port_problems(spec: JsonObject, at: str, *, is_pod: bool) -> list[Cause]:
    """On the host's network a port is the host's port."""
    if not spec.get("hostNetwork"):
        return []
    found = []
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host, inner = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or host) and host != inner:
                field = f"{at}.containers[{index}].ports[{number}].hostPort"
                why = "must match `containerPort` when `hostNetwork` is true"
                found.append(bad_value(field, host, why))
    return found


def host_name_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a host name that stands above all others."""
    name = spec.get("hostnameOverride")
    if name is None:
        return []
    field = f"{at}.hostnameOverride"
    found = []
    if spec.get("setHostnameAsFQDN"):
        why = "may not be specified when setHostnameAsFQDN is true"
        found.append(forbidden_field(field, why))
    if spec.get("hostNetwork"):
        found.append(forbidden_field(field, "may not be specified when hostNetwork is true"))
    if len(name) > _LONGEST_HOST:
        found.append(too_long(field, _LONGEST_HOST))
    return found + name_problems(subdomain, name, field)


def alias_problems(aliases: list[JsonObject], at: str) -> list[Cause]:
    """What is wrong with the lines of a pod's hosts file."""
    found: list[Cause] = []
    for index, alias in enumerate(aliases):
        found += address_problems(alias.get("ip") or "", f"{at}[{index}].ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            found += name_problems(subdomain, name, f"{at}[{index}].hostnames[{number}]")
    return found
