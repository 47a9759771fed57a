"""Feature gates are named, known and immutable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.gates import DEFAULTS, FeatureGates, GateError


def test_every_gate_is_on_unless_it_is_switched_off() -> None:
    assert all(FeatureGates().enabled(name) for name in DEFAULTS)
    assert not FeatureGates.parse("VolumeLimitScaling=false").enabled("VolumeLimitScaling")
    assert FeatureGates.parse("VolumeLimitScaling=false").enabled("AttachVolumeLimit")


def test_several_gates_are_set_at_once() -> None:
    gates = FeatureGates.parse(" VolumeLimitScaling=False, AttachVolumeLimit=0,,")
    assert not gates.enabled("VolumeLimitScaling")
    assert not gates.enabled("AttachVolumeLimit")


@pytest.mark.parametrize("text", ["Nonsense=true", "Nonsense", "=true"])
def test_an_unknown_gate_is_an_error(text: str) -> None:
    with pytest.raises(GateError, match="feature gate"):
        FeatureGates.parse(text)


def test_the_error_lists_the_known_gates() -> None:
    with pytest.raises(GateError, match="AttachVolumeLimit, QueueAllocationGate, Runtime"):
        FeatureGates().enabled("Nonsense")


@pytest.mark.parametrize("text", ["VolumeLimitScaling", "VolumeLimitScaling=maybe"])
def test_a_gate_without_a_clear_setting_is_an_error(text: str) -> None:
    with pytest.raises(GateError, match="Name=true or Name=false"):
        FeatureGates.parse(text)


def test_off_and_on_again_is_as_before() -> None:
    off = FeatureGates().with_gate("AttachVolumeLimit", False)
    assert off != FeatureGates()
    on = off.with_gate("AttachVolumeLimit", True)
    assert on == FeatureGates()
    assert hash(on) == hash(FeatureGates())


@given(st.dictionaries(st.sampled_from(sorted(DEFAULTS)), st.booleans()))
def test_what_is_written_is_what_is_read(settings: dict[str, bool]) -> None:
    text = ",".join(f"{name}={on}" for name, on in settings.items())
    assert FeatureGates.parse(text) == FeatureGates(settings)
    assert FeatureGates.parse(text).as_dict() == {**DEFAULTS, **settings}
