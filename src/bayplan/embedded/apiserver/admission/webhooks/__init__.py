"""Admission webhooks: other programs that may change or refuse a write."""
