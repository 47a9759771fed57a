"""HTTP itself: connections, bodies, formats and how answers are sent."""
