"""Groups that say what they need instead of an instance type: EC2 knows which types that is.

Their nodes have at least the processors and the memory that are asked for, whatever the type.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.autoscaler.providers.aws.sdk import Sdk

_DEFAULT_ARCHITECTURES = ["x86_64"]


async def types_for(sdk: Sdk, requirements: Mapping[str, object], image: str) -> list[str]:
    """The instance types that meet them."""
    found = await sdk.ask_all(
        "ec2",
        "get_instance_types_from_instance_requirements",
        "InstanceTypes",
        ArchitectureTypes=await _architectures(sdk, image),
        VirtualizationTypes=["hvm"],
        InstanceRequirements=dict(requirements),
    )
    return [str(one.get("InstanceType", "")) for one in found if isinstance(one, dict)]


def at_least(requirements: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Processors and MiB of memory that there are at least."""
    return _least(requirements.get("VCpuCount")), _least(requirements.get("MemoryMiB"))


def _least(said: object) -> int | None:
    least = said.get("Min") if isinstance(said, dict) else None
    return least if isinstance(least, int) and least > 0 else None


async def _architectures(sdk: Sdk, image: str) -> list[str]:
    """What the image runs on."""
    if not image:
        return _DEFAULT_ARCHITECTURES
    found = await sdk.ask("ec2", "describe_images", ImageIds=[image])
    images = found.get("Images") or []
    known = {str(one.get("Architecture", "")) for one in images if isinstance(one, dict)}
    return sorted(known - {""}) or _DEFAULT_ARCHITECTURES
