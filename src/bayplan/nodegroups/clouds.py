"""The clouds that node groups can be of: one word for each, and nothing else outside its package.

`bayplan.autoscaler.providers.<name>` opens a cloud; the autoscaler's `--cloud-provider` and the
value `autoscaler.cloudProvider` of a deployment take these names.
"""

from __future__ import annotations

from typing import Literal

CloudName = Literal["externalgrpc", "clusterapi", "aws"]
