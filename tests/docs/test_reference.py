"""The reference says what the types and the registries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import migration, reference
from tests.docs.reference import page_with_reference

PAGES = reference.pages() | migration.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_is_what_the_types_say(page: Path) -> None:
    assert page.read_text() == page_with_reference(page, PAGES[page]), "run `make docs`"


def test_every_flag_and_metric_people_come_from_is_the_same_or_explained() -> None:
    assert {"cluster-autoscaler", "kube-scheduler", "volcano"} == set(migration.upstreams())
    for one in migration.upstreams().values():
        assert len(one.flags) > 30
        assert len(one.metrics) > 30


def test_a_name_that_is_neither_or_both_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing is said"):
        migration.here(["odd"], set(), [])
    with pytest.raises(ValueError, match="nothing"):
        migration.here(["odd"], {"odd"}, [migration.Instead("nothing", ["o*"])])
