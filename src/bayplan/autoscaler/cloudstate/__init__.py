"""What the cloud says of node groups, and which of them back off after failures."""
