"""The scheduling queue: active, backing off, unschedulable, gated, held and in-flight pods."""

from bayplan.scheduler.queue.entry import QueuedPod, SubQueue
from bayplan.scheduler.queue.hints import QueueingHints
from bayplan.scheduler.queue.queue import SchedulingQueue

__all__ = ["QueuedPod", "QueueingHints", "SchedulingQueue", "SubQueue"]
