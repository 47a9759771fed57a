"""Names and texts use the field's words: see docs/glossary.md."""

from __future__ import annotations

import pytest

from tests.style.sources import AVOIDED, modules, package, public_classes, texts

pytestmark = pytest.mark.xdist_group("sources")  # they are parsed once

PENDING: frozenset[str] = frozenset()
"""Packages whose words are still to be changed."""

ALLOWED_TEXTS: dict[str, str] = {
    "Queue says not yet": "the title of a story",
    "5-queue-says-not-yet": "the cluster file of that story",
}
"""By a part of the text, why it may use a word that is avoided elsewhere."""

ALLOWED_LITERALS: dict[str, str] = {
    "bought": "the deprecated value of an event and of a plan's status, written for one version",
    "scaling/bought": "the deprecated name of a series, written for one version",
}
"""By the whole literal, why it may use a word that is avoided elsewhere."""

ALLOWED_GERUNDS: dict[str, str] = {
    "embedded.apiserver.crds.pruning": "Kubernetes' word for dropping unknown fields",
    "embedded.apiserver.validation.scheduling": "the API group scheduling.k8s.io",
    "embedded.apiserver.validation.pods.scheduling": "the scheduling fields of a pod",
    "fit.batches.packing": "bin packing",
    "fit.volumes.binding": "Kubernetes' word for giving a claim its volume",
    "images.credentials.keyring": "the kubelet's and Docker's word for credentials by registry",
    "reports.pending": "pending pods, Kubernetes' word",
    "scheduler.binding": "binding is the noun of Kubernetes for a pod's assignment to a node",
    "ui.picture.pending": "Kubernetes' word for pods without a node",
}
"""By module, why its name ends in -ing: the field has the word, or it is a plain noun."""


def test_a_public_class_name_is_used_once() -> None:
    shared = {
        name: homes
        for name, homes in public_classes().items()
        if len([home for home in homes if package(home) not in PENDING]) > 1
    }
    assert shared == {}


def test_texts_use_the_words_of_the_field() -> None:
    found = [
        f"{one.module}:{one.line}: {match.group()}: {one.text.strip()[:80]}"
        for one in texts()
        if package(one.module) not in PENDING
        and (match := AVOIDED.search(one.text))
        and one.text not in ALLOWED_LITERALS
        and not any(part in one.text for part in ALLOWED_TEXTS)
    ]
    assert found == []


def test_no_exception_is_left_that_nothing_needs() -> None:
    every = [one.text for one in texts()]
    assert [part for part in ALLOWED_TEXTS if not any(part in text for text in every)] == []
    assert [text for text in ALLOWED_LITERALS if text not in every] == []
    assert [name for name in ALLOWED_GERUNDS if name not in modules()] == []


def test_a_module_is_named_by_a_noun() -> None:
    gerunds = [
        name
        for name in modules()
        if name.rsplit(".", 1)[-1].endswith("ing")
        and package(name) not in PENDING
        and name not in ALLOWED_GERUNDS
    ]
    assert gerunds == []
