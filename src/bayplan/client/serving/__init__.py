"""Parts of our own servers: certificates, sockets, health endpoints, limits on requests."""
