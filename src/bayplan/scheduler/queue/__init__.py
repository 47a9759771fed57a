"""Which pod is next: active, resting, waiting for an event, gated, or being decided."""

from bayplan.scheduler.queue.entry import Place, QueuedPod
from bayplan.scheduler.queue.judge import Judge
from bayplan.scheduler.queue.queue import SchedulingQueue

__all__ = ["Judge", "Place", "QueuedPod", "SchedulingQueue"]
