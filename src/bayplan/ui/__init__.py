"""The web page of a cluster: its data and its server."""
