"""Reports of simulations: an HTML page, JSON and CSV."""
