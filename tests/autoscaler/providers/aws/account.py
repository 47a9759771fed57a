"""What is in the account: made with boto3 itself, straight at moto's server."""

from __future__ import annotations

from typing import Any

import boto3

REGION = "eu-west-1"
IMAGE = "ami-12c6146b"
TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"


class Account:
    """An account in moto."""

    def __init__(self, url: str) -> None:
        session = boto3.session.Session("id", "key")
        self.scaling = session.client("autoscaling", region_name=REGION, endpoint_url=url)
        self.ec2 = session.client("ec2", region_name=REGION, endpoint_url=url)

    def launch_template(self, name: str = "launch", **data: Any) -> None:
        self.ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={"ImageId": IMAGE, "InstanceType": "m5.large", **data},
        )

    def group(
        self,
        name: str = "workers",
        size: int = 0,
        *,
        most: int = 5,
        least: int = 0,
        tags: dict[str, str] | None = None,
        **launched: Any,
    ) -> None:
        """A group of m5.large in two zones, unless it is said what it launches."""
        if not launched:
            there = self.ec2.describe_launch_templates()["LaunchTemplates"]
            if "launch" not in {one["LaunchTemplateName"] for one in there}:
                self.launch_template()
            launched = {"LaunchTemplate": {"LaunchTemplateName": "launch", "Version": "$Latest"}}
        self.scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=least,
            MaxSize=most,
            DesiredCapacity=size,
            AvailabilityZones=[f"{REGION}a", f"{REGION}b"],
            Tags=[
                {"Key": key, "Value": value, "PropagateAtLaunch": False}
                for key, value in (tags or {}).items()
            ],
            **launched,
        )

    def read(self, name: str = "workers") -> Any:
        found = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return found["AutoScalingGroups"][0]

    def size(self, name: str = "workers") -> int:
        return int(self.read(name)["DesiredCapacity"])

    def instances(self, name: str = "workers") -> list[str]:
        return [one["InstanceId"] for one in self.read(name)["Instances"]]

    def tag(self, name: str, **tags: str) -> None:
        self.scaling.create_or_update_tags(
            Tags=[
                {
                    "ResourceId": name,
                    "ResourceType": "auto-scaling-group",
                    "Key": key,
                    "Value": value,
                    "PropagateAtLaunch": False,
                }
                for key, value in tags.items()
            ]
        )

    def delete(self, name: str = "workers") -> None:
        self.scaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
