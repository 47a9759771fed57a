"""Text output of commands: tables, colours, progress."""
