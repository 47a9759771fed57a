"""The matcher on every row of the rules' tables."""

import pytest

from bayplan.images.platforms import (
    Isolation,
    Platform,
    PlatformMatcher,
    host_platform,
    match_entries,
    normalise,
    parse_platform,
)
from bayplan.images.registry.manifests import OCI_MANIFEST, Descriptor

PROCESS, HYPERV = Isolation.PROCESS, Isolation.HYPERV


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("linux/x86_64", "linux/amd64"),
        ("linux/x86-64", "linux/amd64"),
        ("linux/amd64/v1", "linux/amd64"),
        ("linux/amd64/v3", "linux/amd64/v3"),
        ("linux/aarch64", "linux/arm64"),
        ("linux/arm64/v8", "linux/arm64"),
        ("linux/arm64/8", "linux/arm64"),
        ("linux/arm64/v9", "linux/arm64/v9"),
        ("linux/arm", "linux/arm/v7"),
        ("linux/arm/6", "linux/arm/v6"),
        ("linux/armhf", "linux/arm/v7"),
        ("linux/armel", "linux/arm/v6"),
        ("linux/i386", "linux/386"),
        ("Linux/AMD64", "linux/amd64"),
        ("macos/arm64", "darwin/arm64"),
        ("windows(10.0.17763)/amd64", "windows(10.0.17763)/amd64"),
    ],
)
def test_every_spelling_has_one_normal_form(written: str, normal: str) -> None:
    assert str(parse_platform(written)) == normal


@pytest.mark.parametrize("written", ["linux", "", "a/b/c/d", "linux//v7", "windows(10/amd64"])
def test_what_is_no_platform_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="platform"):
        parse_platform(written)


FALLBACKS = {
    "linux/amd64": ["linux/amd64", "linux/386"],
    "linux/amd64/v3": ["linux/amd64/v3", "linux/amd64/v2", "linux/amd64", "linux/386"],
    "linux/arm/v7": ["linux/arm/v7", "linux/arm/v6", "linux/arm/v5"],
    "linux/arm/v6": ["linux/arm/v6", "linux/arm/v5"],
    "linux/arm64": ["linux/arm64", "linux/arm/v8", "linux/arm/v7", "linux/arm/v6", "linux/arm/v5"],
    "linux/arm64/v9": [
        *("linux/arm64/v9", "linux/arm64", "linux/arm/v8"),
        *("linux/arm/v7", "linux/arm/v6", "linux/arm/v5"),
    ],
    "linux/s390x": ["linux/s390x"],
    "linux/386": ["linux/386"],
}
EVERYTHING = sorted({name for names in FALLBACKS.values() for name in names} | {"windows/amd64"})


@pytest.mark.parametrize("wanted", FALLBACKS)
def test_a_processor_runs_its_own_kind_and_its_predecessors_in_order(wanted: str) -> None:
    entries = [described(parse_platform(name)) for name in EVERYTHING]
    matching = match_entries(entries, PlatformMatcher(parse_platform(wanted))).matching
    assert [str(one.platform) for one in matching] == FALLBACKS[wanted]


@pytest.mark.parametrize(
    ("host", "guest", "process", "hyperv"),
    [
        # Before 20348 the very same build, whatever the revision.
        ("10.0.17763.1", "10.0.17763.4851", True, True),
        ("10.0.17763", "10.0.14393.1", False, True),
        ("10.0.17763", "10.0.18362.1", False, False),
        ("10.0.19042", "10.0.19041.1", False, True),
        # 2022: itself alone in process isolation, everything older under Hyper-V.
        ("10.0.20348", "10.0.20348.1970", True, True),
        ("10.0.20348", "10.0.17763.4851", False, True),
        ("10.0.20348", "10.0.19042.1", False, True),
        ("10.0.20348", "10.0.26100.1", False, False),
        # 23H2 and 2025: back to 2022.
        ("10.0.25398", "10.0.20348.1", True, True),
        ("10.0.25398", "10.0.25398.1", True, True),
        ("10.0.26100", "10.0.20348.1", True, True),
        ("10.0.26100", "10.0.25398.1", True, True),
        ("10.0.26100", "10.0.17763.1", False, True),
        # After 2025: back to 2025.
        ("10.0.27000", "10.0.26100.1", True, True),
        ("10.0.27000", "10.0.20348.1", False, True),
        ("10.0.27000", "10.0.27000.1", True, True),
        # Hyper-V knows only released builds.
        ("10.0.26100", "10.0.19999.1", False, False),
        # Major and minor decide in both.
        ("10.0.20348", "6.3.9600", False, False),
        ("10.1.20348", "10.0.20348.1", False, False),
        # What is no version matches nothing.
        ("10.0.20348", "ltsc2022", False, False),
        # What says nothing matches.
        ("10.0.20348", "", True, True),
        ("", "10.0.17763.1", True, True),
    ],
)
def test_windows_versions_match_by_isolation(
    host: str, guest: str, process: bool, hyperv: bool
) -> None:
    wanted, offered = windows(host), windows(guest)
    assert PlatformMatcher(wanted, PROCESS).matches(offered) is process
    assert PlatformMatcher(wanted, HYPERV).matches(offered) is hyperv


def test_revisions_are_compared_as_numbers() -> None:
    entries = [described(windows(f"10.0.20348.{revision}")) for revision in (999, 1970, 5)]
    best = match_entries(entries, PlatformMatcher(windows("10.0.20348"))).matching[0]
    assert best.platform == windows("10.0.20348.1970")


def test_the_newest_build_that_runs_is_preferred_and_a_silent_entry_comes_after() -> None:
    entries = [described(windows(v)) for v in ("", "10.0.17763.9", "10.0.20348.1", "10.0.26100.1")]
    matching = match_entries(entries, PlatformMatcher(windows("10.0.20348"), HYPERV)).matching
    versions = [one.platform.os_version for one in matching if one.platform]
    assert versions == ["10.0.20348.1", "10.0.17763.9", ""]


def test_os_features_of_the_image_must_be_the_platforms_and_more_are_better() -> None:
    wanted = Platform(os="windows", architecture="amd64", os_features=("win32k", "gpu"))
    plain = Platform(os="windows", architecture="amd64")
    fuller = Platform(os="windows", architecture="amd64", os_features=("win32k",))
    foreign = Platform(os="windows", architecture="amd64", os_features=("win32k", "other"))
    entries = [described(plain), described(fuller), described(foreign)]
    assert [one.platform for one in match_entries(entries, PlatformMatcher(wanted)).matching] == [
        fuller,
        plain,
    ]
    assert match_entries(entries, PlatformMatcher(plain)).matching == [described(plain)]


def test_entries_without_platform_are_set_apart_and_attestations_never_match() -> None:
    silent = described(None)
    attested = described(Platform(os="unknown", architecture="unknown"))
    marked = described(
        Platform(os="linux", architecture="amd64"),
        {"vnd.docker.reference.type": "attestation-manifest"},
    )
    own = described(Platform(os="linux", architecture="amd64"))
    choice = match_entries(
        [attested, silent, marked, own], PlatformMatcher(parse_platform("linux/amd64"))
    )
    assert (choice.matching, choice.undeclared) == ([own], [silent])
    assert choice.offered == [own.platform]


def test_the_host_has_a_normal_platform() -> None:
    host = host_platform()
    assert host == normalise(host)
    assert host.os
    assert host.architecture


def windows(version: str) -> Platform:
    return Platform(os="windows", architecture="amd64", os_version=version)


def described(platform: Platform | None, annotations: dict[str, str] | None = None) -> Descriptor:
    digest = f"sha256:{abs(hash(platform)):064x}"
    return Descriptor(OCI_MANIFEST, digest, 1, platform, annotations or {})
