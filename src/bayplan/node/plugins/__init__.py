"""A plugin for each kind of volume whose attach limit depends on the instance type."""

from bayplan.node.plugins.aws_ebs import AwsEbsLimits
from bayplan.node.plugins.azure_disk import AzureDiskLimits
from bayplan.node.plugins.base import ComputedLimit, LimitPlugin, OtherCloudError
from bayplan.node.plugins.cinder import CinderLimits
from bayplan.node.plugins.csi import CsiLimits
from bayplan.node.plugins.gce_pd import GcePdLimits

PLUGINS: tuple[LimitPlugin, ...] = (
    AwsEbsLimits(),
    GcePdLimits(),
    AzureDiskLimits(),
    CinderLimits(),
    CsiLimits(),
)

__all__ = ["PLUGINS", "ComputedLimit", "LimitPlugin", "OtherCloudError"]
