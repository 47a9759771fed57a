"""What `bayplan check` prints: tables for people, and the same for programs."""
