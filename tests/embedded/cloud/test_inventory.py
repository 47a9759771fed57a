"""What a cloud sold, what failed and what was paid outlive the process, with the data file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bayplan.embedded.apiserver.store.database import Database, StoreError
from tests.embedded.cloud.clouds import GPUS, WORKERS, ManualClock, SimulatedCloud


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def again(simulated: SimulatedCloud, data: Path, **options: object) -> SimulatedCloud:
    """The next run, some hours later."""
    simulated.database.close()
    clock = ManualClock(simulated.clock.moment + timedelta(hours=2))
    return SimulatedCloud(data=data, clock=clock, **options)  # type: ignore[arg-type]


def test_targets_and_failed_instances_are_kept_and_nothing_is_bought_anew(data: Path) -> None:
    first = SimulatedCloud(data=data)
    first.forward()
    first.inject(kind="stock-out", group="workers")
    first.cloud.increase("workers", 2)
    first.cloud.delete(["workers-1"])
    first.forward()
    states = first.states()
    assert ("workers-4", "failed") in states
    second = again(first, data)
    assert second.states() == states
    assert second.cloud.instance("workers-4").error == "no large left in zone-b"
    assert second.cloud.target("workers") == 3
    assert second.cloud.increase("gpus", 1)[0].name == "gpus-1"


def test_a_group_that_was_emptied_stays_empty(data: Path) -> None:
    roomy = msgspec.structs.replace(WORKERS, minimum=0)
    first = SimulatedCloud([roomy], data)
    first.cloud.delete(["workers-1", "workers-2"])
    second = again(first, data, groups=[roomy])
    assert second.states() == []
    assert second.cloud.increase("workers", 1)[0].name == "workers-3"


def test_what_was_still_booting_boots_in_the_next_run(data: Path) -> None:
    first = SimulatedCloud(data=data)
    assert {state for _, state in first.states()} == {"creating"}
    second = again(first, data)
    second.settle()
    assert sorted(second.fleet.machines) == ["workers-1", "workers-2"]


def test_what_was_spent_is_kept_and_goes_on(data: Path) -> None:
    first = SimulatedCloud(data=data)
    first.forward(3600)
    first.cloud.delete(["workers-1"])
    first.forward(3600)
    assert first.cloud.spent() == pytest.approx(1.5)
    second = again(first, data)
    assert second.cloud.spent() == pytest.approx(2.5)


def test_a_group_that_the_file_no_longer_has_is_gone_but_was_paid(data: Path) -> None:
    first = SimulatedCloud(data=data)
    first.forward(3600)
    second = again(first, data, groups=[GPUS])
    assert second.cloud.instances == {}
    assert second.cloud.spent() == pytest.approx(3.0)


def test_a_new_group_starts_as_its_file_says(data: Path) -> None:
    second = again(SimulatedCloud([GPUS], data), data, groups=[GPUS, WORKERS])
    assert second.cloud.target("workers") == 2


def test_an_account_that_cannot_be_read_is_an_error(data: Path) -> None:
    database = Database(data)
    database.put_meta("note/cloud/", b"{}")
    database.close()
    with pytest.raises(StoreError, match="the records of the simulated cloud cannot be read"):
        SimulatedCloud(data=data)
