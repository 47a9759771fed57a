"""Plans carried out: scale-ups, removal of nodes, cleanup of failed instances."""
