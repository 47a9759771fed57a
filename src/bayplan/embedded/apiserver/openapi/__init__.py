"""OpenAPI: what is served and its shapes, for clients that check before they send."""
