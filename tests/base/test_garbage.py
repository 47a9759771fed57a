"""The garbage collector, paused while a cluster is read: what is frozen for good stays frozen."""

from __future__ import annotations

import gc

from bayplan.base.garbage import freeze, paused_collector, unfreeze


def test_reading_leaves_nothing_frozen_and_collects_afterwards() -> None:
    with paused_collector():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_what_was_frozen_before_stays_so_until_it_is_unfrozen() -> None:
    freeze()
    frozen = gc.get_freeze_count()
    with paused_collector():
        pass
    assert gc.get_freeze_count() > frozen // 2 > 0  # what nobody refers to any more is gone
    unfreeze()
    with paused_collector():
        pass
    assert gc.get_freeze_count() == 0
