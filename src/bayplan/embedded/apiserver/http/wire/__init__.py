"""HTTP itself: connections, bodies, media types, and sending of responses."""
