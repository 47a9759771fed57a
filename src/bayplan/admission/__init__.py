"""The webhook: what is put right at the door, and what is not let in."""
