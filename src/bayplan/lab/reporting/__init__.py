"""Reports on simulations: one page that opens from disk, and the same as JSON and CSV."""
