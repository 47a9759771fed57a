"""What holds for every index and every platform."""

import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.platforms import (
    KNOWN_BUILDS,
    Isolation,
    Platform,
    PlatformMatcher,
    match_entries,
    normalise,
    parse_platform,
    parse_version,
)
from bayplan.images.registry.manifests import OCI_MANIFEST, Descriptor

pytestmark = pytest.mark.whole


_BUILDS = st.sampled_from([*sorted(KNOWN_BUILDS), 19999, 27000])
_VERSIONS = st.builds(lambda build, rev: f"10.0.{build}.{rev}", _BUILDS, st.integers(0, 9999))
_FEATURES = st.sets(st.sampled_from(["win32k", "gpu", "x"])).map(lambda s: tuple(sorted(s)))
PLATFORMS = st.one_of(
    st.builds(
        lambda arch, variant: Platform(os="linux", architecture=arch, variant=variant),
        st.sampled_from(["amd64", "x86_64", "arm", "arm64", "aarch64", "armhf", "armel", "386"]),
        st.sampled_from(["", "v1", "v2", "v3", "v5", "v6", "v7", "v8", "v9", "7", "odd"]),
    ),
    st.builds(
        lambda version, features: Platform(
            os="windows", architecture="amd64", os_version=version, os_features=features
        ),
        st.one_of(st.just(""), _VERSIONS),
        _FEATURES,
    ),
)
MATCHERS = st.builds(PlatformMatcher, PLATFORMS, st.sampled_from(Isolation))


def entries_of(platforms: list[Platform]) -> list[Descriptor]:
    return [
        Descriptor(OCI_MANIFEST, f"sha256:{place:064x}", 1, platform)
        for place, platform in enumerate(platforms)
    ]


@given(MATCHERS, st.lists(PLATFORMS, max_size=12), st.randoms(use_true_random=False))
def test_the_choice_does_not_depend_on_the_order_except_among_equals(
    matcher: PlatformMatcher, platforms: list[Platform], random: Random
) -> None:
    entries = entries_of(platforms)
    shuffled = random.sample(entries, len(entries))
    first, second = (
        match_entries(entries, matcher).matching,
        match_entries(shuffled, matcher).matching,
    )
    assert [rank(matcher, one) for one in first] == [rank(matcher, one) for one in second]
    assert {one.digest for one in first} == {one.digest for one in second}


@given(MATCHERS, st.lists(PLATFORMS, max_size=12))
def test_equals_keep_the_order_of_the_index(
    matcher: PlatformMatcher, platforms: list[Platform]
) -> None:
    entries = entries_of([*platforms, *platforms])
    matching = match_entries(entries, matcher).matching
    for one, other in itertools.pairwise(matching):
        if rank(matcher, one) == rank(matcher, other):
            assert entries.index(one) < entries.index(other)


@given(PLATFORMS)
def test_a_platform_is_normal_after_one_step_and_matches_itself(platform: Platform) -> None:
    normal = normalise(platform)
    assert normalise(normal) == normal
    for isolation in Isolation:
        assert PlatformMatcher(platform, isolation).matches(platform)
        assert PlatformMatcher(platform, isolation).matches(normal)


@given(PLATFORMS)
def test_the_spelling_of_a_normal_platform_reads_back(platform: Platform) -> None:
    normal = normalise(platform)
    if not normal.os_features:
        assert parse_platform(str(normal)) == normal


@given(MATCHERS, PLATFORMS)
def test_no_spelling_changes_the_answer(matcher: PlatformMatcher, platform: Platform) -> None:
    normal = PlatformMatcher(normalise(matcher.platform), matcher.isolation)
    assert matcher.rank(platform) == normal.rank(normalise(platform))


@given(_VERSIONS, _VERSIONS)
def test_hyperv_takes_whatever_process_isolation_takes_of_released_builds(
    host: str, guest: str
) -> None:
    wanted, offered = (
        Platform(os="windows", architecture="amd64", os_version=version)
        for version in (host, guest)
    )
    ours, theirs = parse_version(host), parse_version(guest)
    assert ours is not None
    assert theirs is not None
    process = PlatformMatcher(wanted, Isolation.PROCESS).matches(offered)
    hyperv = PlatformMatcher(wanted, Isolation.HYPERV).matches(offered)
    if process and theirs.build in KNOWN_BUILDS:
        assert hyperv
    if theirs.build > ours.build:
        assert not process
        assert not hyperv


def rank(matcher: PlatformMatcher, entry: Descriptor) -> object:
    assert entry.platform is not None
    return matcher.rank(entry.platform)
