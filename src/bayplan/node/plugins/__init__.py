"""A plugin for each kind of volume whose limit depends on the machine."""

from bayplan.node.plugins.aws_ebs import AwsEbs
from bayplan.node.plugins.azure_disk import AzureDisk
from bayplan.node.plugins.base import Found, LimitPlugin, OtherCloudError
from bayplan.node.plugins.cinder import Cinder
from bayplan.node.plugins.csi import Csi
from bayplan.node.plugins.gce_pd import GcePd

PLUGINS: tuple[LimitPlugin, ...] = (AwsEbs(), GcePd(), AzureDisk(), Cinder(), Csi())

__all__ = ["PLUGINS", "Found", "LimitPlugin", "OtherCloudError"]
