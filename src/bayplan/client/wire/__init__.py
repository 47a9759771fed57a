"""Sending requests: transports, connections, rate limits, time and size limits, retries."""
