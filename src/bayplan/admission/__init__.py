"""The webhook: the queue gate added to pods, and the validation of pods, queues and groups."""
