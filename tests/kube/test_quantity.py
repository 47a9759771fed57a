"""Quantities mean, round and print what Kubernetes says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube import quantity
from bayplan.kube.meta import Quantity
from bayplan.kube.quantity import MAX_INT64, QuantityError, Style

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

numbers = st.from_regex(r"[+-]?([0-9]{1,15}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True)
exponents = st.integers(-30, 30).flatmap(lambda n: st.sampled_from([f"e{n}", f"E{n}"]))
written = st.builds(lambda n, s: n + s, numbers, st.one_of(st.sampled_from(SUFFIXES), exponents))


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("0", 0), ("1", 1), ("100m", Fraction(1, 10)), ("5n", Fraction(5, 10**9)),
        ("4u", Fraction(4, 10**6)), ("8k", 8000), ("7M", 7 * 10**6), ("6G", 6 * 10**9),
        ("5T", 5 * 10**12), ("2P", 2 * 10**15), ("1E", 10**18), ("12E", 12 * 10**18),
        ("1Ki", 1024), ("7Mi", 7 << 20), ("6Gi", 6 << 30), ("5Ti", 5 << 40), ("4Pi", 4 << 50),
        ("3Ei", 3 << 60), ("1.5Gi", 3 << 29), ("0.5Mi", 1 << 19), ("1e3", 1000), ("1E6", 10**6),
        ("1.3E+6", 1300000), ("1E-3", Fraction(1, 1000)), ("0.5e-2", Fraction(5, 1000)),
        (".5", Fraction(1, 2)), ("5.", 5), ("1.G", 10**9), ("+1", 1), ("-1.5", Fraction(-3, 2)),
        ("007", 7), (" 1 ", 1), ("100.035k", 100035), ("100.035Ki", Fraction("102435.84")),
        ("0.05Gi", Fraction("53687091.2")),
    ],
)  # fmt: skip
def test_every_form_has_its_exact_value(text: str, exact: Fraction | int) -> None:
    assert quantity.parse(text) == exact


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("3.001n", 4), ("0.1n", 1), ("1.1E-9", 2), ("0.0000000001", 1), ("0.5e-9", 1),
        ("0.00000012345", 124), ("1e-900", 1), ("-0.1n", -1), ("-3.001n", -4),
        ("0.000000000001Ki", 2),
    ],
)  # fmt: skip
def test_what_is_finer_than_a_billionth_rounds_up_away_from_zero(text: str, nanos: int) -> None:
    assert quantity.parse(text) * 10**9 == nanos


@pytest.mark.parametrize("text", ["8Ei", "9Ei", "9223372036854775807Ki", "100000000000Ei"])
def test_a_binary_value_is_capped_at_64_bits(text: str) -> None:
    assert quantity.value(text) == MAX_INT64
    assert quantity.value(f"-{text}") == -MAX_INT64


def test_a_decimal_value_is_not_capped() -> None:
    assert quantity.value("100E") == 10**20


@pytest.mark.parametrize(
    ("text", "whole", "thousandths"),
    [
        ("1", 1, 1000), ("1.1", 2, 1100), ("100m", 1, 100), ("1u", 1, 1), ("-1.1", -2, -1100),
        ("-1n", -1, -1), ("0", 0, 0), ("1500m", 2, 1500), ("1Ki", 1024, 1024000),
    ],
)  # fmt: skip
def test_whole_and_thousandth_units_round_up_away_from_zero(
    text: str, whole: int, thousandths: int
) -> None:
    assert quantity.value(text) == whole
    assert quantity.milli_value(text) == thousandths


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"), ("0Ki", "0"), ("0.0", "0"), ("1", "1"), ("1000", "1k"), ("1500m", "1500m"),
        ("1.5", "1500m"), ("1.5Gi", "1536Mi"), ("1024", "1024"), ("1024Ki", "1Mi"),
        ("0.5Ki", "512"), ("1.1Ki", "1126400m"), ("1000000", "1M"), ("100000Ki", "100000Ki"),
        ("1e3", "1e3"), ("1000e3", "1e6"), ("1e4", "10e3"), ("0.1e3", "100"), ("-1.5", "-1500m"),
        ("0.0000001Mi", "104857600n"), ("8Ei", "9223372036854775807"), ("1024Mi", "1Gi"),
        ("1000m", "1"), ("2500u", "2500u"), ("1e100", "10e99"), (1, "1"), (0.5, "500m"),
    ],
)  # fmt: skip
def test_the_canonical_form_is_what_kubernetes_prints(text: Quantity, printed: str) -> None:
    assert quantity.format(text) == printed


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "Ki", "m", ".", "+", "-.", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i",
        "1i", "-3.01i", "-3.01e-", "1e", "1ee5", "1e5.0", "1 Gi", "1GiB", "0x10", "1_000", "1,5",
        "--1", "1KI", "1K", "NaN", "inf", "१", "1\x00", "1e+", "true",
    ],
)  # fmt: skip
def test_what_is_not_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    "hostile",
    [
        "1" * 10_000_000, " " * 10_000_000 + "1", "1e999999999999", "1e-999999999999", "1e1001",
        10**5000, float("nan"), float("inf"), True,
    ],
    ids=["digits", "spaces", "exponent", "small", "beyond", "integer", "nan", "inf", "bool"],
)  # fmt: skip
def test_hostile_numbers_are_refused_in_a_short_sentence(hostile: Quantity) -> None:
    with pytest.raises(QuantityError) as refused:
        quantity.value(hostile)
    assert len(str(refused.value)) < 200


def test_a_bool_is_no_number_even_after_an_equal_one_was_read() -> None:
    assert quantity.value(1) == 1
    with pytest.raises(QuantityError):
        quantity.value(True)


@pytest.mark.parametrize(
    ("number", "exact"), [(1, 1), (0.1, Fraction(1, 10)), (1e22, 10**22), (2.5, Fraction(5, 2))]
)
def test_json_numbers_count_as_their_digits(number: float, exact: Fraction | int) -> None:
    assert quantity.parse(number) == exact


@given(written)
def test_printing_keeps_the_value(text: str) -> None:
    assert quantity.parse(quantity.format(text)) == quantity.parse(text)


@given(written)
def test_printing_twice_changes_nothing(text: str) -> None:
    printed = quantity.format_amount(quantity.parse(text))
    assert quantity.format(printed) == printed


@given(written)
def test_units_are_the_nearest_that_hold_the_value(text: str) -> None:
    exact = quantity.parse(text)
    for units, scale in ((quantity.value(text), 1), (quantity.milli_value(text), 1000)):
        assert abs(units) >= abs(exact * scale)
        assert abs(units) - abs(exact * scale) < 1
        assert units * exact >= 0


@given(st.integers(-(10**15), 10**15), st.sampled_from(sorted(POWERS)))
def test_a_decimal_suffix_is_its_power_of_ten(number: int, suffix: str) -> None:
    assert quantity.parse(f"{number}{suffix}") == number * Fraction(10) ** POWERS[suffix]


@given(st.integers(0, MAX_INT64))
def test_any_amount_prints_in_any_style_without_loss(amount: int) -> None:
    for style in Style:
        assert quantity.parse(quantity.format_amount(amount, style)) == amount


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity.parse(text)
    except QuantityError:
        return
    assert any(character in "0123456789" for character in text)
