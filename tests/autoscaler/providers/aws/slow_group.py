"""A group whose instances take their time to end, and whose answers may be behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web

from tests.autoscaler.providers.aws.wire import Wire

SCALING = "http://autoscaling.amazonaws.com/doc/2011-01-01/"
DESCRIBE, ACTIVITIES = "DescribeAutoScalingGroups", "DescribeScalingActivities"
RESIZE, END = "SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"


def member(**fields: object) -> str:
    text = "".join(f"<{key}>{value}</{key}>" for key, value in fields.items())
    return f"<member>{text}</member>"


def answer(action: str, body: str) -> web.Response:
    result = f"<{action}Result>{body}</{action}Result>"
    text = f'<{action}Response xmlns="{SCALING}">{result}</{action}Response>'
    return web.Response(text=text, content_type="text/xml")


@dataclass
class SlowGroup:
    """Group `workers`; every termination takes one off its size, also a repeated one."""

    states: dict[str, str]
    size: int
    shows_states: bool = True
    """Whether a termination is in an instance's state, not only among the activities."""
    shows_activities: bool = True
    loses_answers: bool = False
    """Terminations are carried out, and not confirmed."""
    ended: list[str] = field(default_factory=list)

    def behind(self, wire: Wire) -> None:
        """Answer for AWS."""
        wire.troubles |= {
            DESCRIBE: self.describe,
            ACTIVITIES: self.activities,
            RESIZE: self.resize,
            END: self.end,
        }

    async def describe(self, _: dict[str, str]) -> web.Response:
        going = set(self.ended) if self.shows_states else set()
        instances = "".join(
            member(
                InstanceId=name,
                AvailabilityZone="eu-west-1a",
                LifecycleState="Terminating" if name in going else state,
            )
            for name, state in self.states.items()
        )
        group = member(
            AutoScalingGroupName="workers",
            MinSize=0,
            MaxSize=9,
            DesiredCapacity=self.size,
            AvailabilityZones="<member>eu-west-1a</member>",
            Instances=instances,
        )
        return answer(DESCRIBE, f"<AutoScalingGroups>{group}</AutoScalingGroups>")

    async def activities(self, _: dict[str, str]) -> web.Response:
        rows = [
            member(
                ActivityId=number,
                Description=f"Terminating EC2 instance: {name}",
                StatusCode="InProgress",
                StartTime="2026-01-01T00:00:00Z",
            )
            for number, name in enumerate(self.ended if self.shows_activities else ())
        ]
        return answer(ACTIVITIES, f"<Activities>{''.join(rows)}</Activities>")

    async def resize(self, said: dict[str, str]) -> web.Response:
        self.size = int(said["DesiredCapacity"])
        return answer(RESIZE, "")

    async def end(self, said: dict[str, str]) -> web.Response:
        self.size -= said["ShouldDecrementDesiredCapacity"] == "true"
        self.ended.append(said["InstanceId"])
        if self.loses_answers:
            return web.Response(status=502, text="bad gateway")
        return answer(END, "<Activity><ActivityId>1</ActivityId></Activity>")
