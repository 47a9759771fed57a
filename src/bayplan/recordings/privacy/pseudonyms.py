"""Pseudonyms of names: the same name has the same pseudonym under one key.

A name is replaced word by word: `data-web-0` becomes three words with the same dashes between them.
So names that are composed of others (the claim `data-web-0` of the pod `web-0`, the zones `a__b`)
still are, and no reference breaks. Without the key a word reveals only that the same word occurs
elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from functools import lru_cache

from bayplan.kube.devices import EXTENDED_PREFIX
from bayplan.kube.names import MAX_LABEL, MAX_NAME
from bayplan.kube.resources import (
    ATTACH_LIMIT_PREFIXES,
    csi_attach_limit_driver,
    csi_attach_limit_key,
    is_hugepage,
)
from bayplan.recordings.privacy import wellknown

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"-?[0-9]{1,9}")
"""A label's value that `Gt` and `Lt` compare; longer numbers may be an account's."""
_SIMPLE = re.compile(r"true|false|yes|no|on-completion|-?[0-9]{1,9}|([0-9]{1,6}(ms|s|m|h))+")
_VERSION = re.compile(r"v[0-9]{1,3}((alpha|beta)[0-9]{1,3})?")
_LENGTH = 9
_CACHED = 1 << 17


class Pseudonyms:
    """Pseudonyms under a key; they depend on the key and the name alone."""

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.blake2b(key, digest_size=32).digest()
        self.word = lru_cache(_CACHED)(self._word)
        self.name = lru_cache(_CACHED)(self._name)

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(errors="replace"), key=self._key).digest()

    def _word(self, word: str) -> str:
        if word in wellknown.PARTS:
            return word
        return base64.b32encode(self._digest(word)[:6]).decode().lower()[:_LENGTH]

    def _name(self, name: str) -> str:
        """Replace the name of an object, or any other string of words."""
        if name in wellknown.NAMES or name in wellknown.DRIVERS:
            return name
        return self._words(name, MAX_NAME)

    def _words(self, text: str, most: int) -> str:
        replaced = _WORD.sub(lambda found: self.word(found[0]), text)
        return replaced if len(replaced) <= most else self.word(text)

    def value(self, key: str, value: str) -> str:
        """Replace the value of a label or a taint."""
        known = wellknown.VALUES.get(key)
        if _NUMBER.fullmatch(value) or value in {"", "true", "false"}:
            return value
        if value in wellknown.NAMES or (known is not None and known.fullmatch(value)):
            return value
        return self._words(value, MAX_LABEL)

    def key(self, key: str) -> str:
        """Replace the key of a label, a taint, a topology or a gate."""
        if key in wellknown.KEYS or key in wellknown.RESOURCES:
            return key
        prefix, slash, name = key.rpartition("/")
        return f"{self._words(prefix, MAX_NAME)}{slash}{self._words(name, MAX_LABEL)}"

    def term(self, text: str) -> str:
        """Keep a term of the API, such as a phase; replace any other."""
        return text if text in wellknown.TERMS else self.key(text)

    def group(self, api_version: str) -> str:
        """Replace the API group and version of an owner."""
        group, slash, version = api_version.rpartition("/")
        kept = group if group in wellknown.GROUPS else self.name(group)
        shown = version if _VERSION.fullmatch(version) else self.name(version)
        return f"{kept}{slash}{shown}"

    def resource(self, name: str) -> str:
        """Replace the name of a resource."""
        if name in wellknown.RESOURCES or is_hugepage(name):
            return name
        if name.startswith(EXTENDED_PREFIX):
            return f"{EXTENDED_PREFIX}{self.name(name.removeprefix(EXTENDED_PREFIX))}"
        for prefix in ATTACH_LIMIT_PREFIXES:
            if name.startswith(prefix):
                return self._limit(name, prefix)
        return self.key(name)

    def _limit(self, key: str, prefix: str) -> str:
        driver = csi_attach_limit_driver(key)
        if driver:
            return csi_attach_limit_key(self.name(driver), prefix)
        return f"{prefix}{self._words(key.removeprefix(prefix), MAX_LABEL - len(prefix))}"

    def note(self, text: str) -> str:
        """Replace the value of an annotation: words between commas."""
        return ",".join(
            one if _SIMPLE.fullmatch(one) else self.name(one) for one in text.split(",")
        )

    def address(self, text: str) -> str:
        """Replace the address of a host; the unspecified address stays."""
        try:
            if not text or ipaddress.ip_address(text).is_unspecified:
                return text
        except ValueError:
            return self.name(text)
        return str(ipaddress.IPv6Address(b"\xfd" + self._digest(text)[:15]))
