"""What may stand in a field: the words of refusals, and which names are well formed."""
