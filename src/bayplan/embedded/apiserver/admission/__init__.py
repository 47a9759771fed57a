"""Admission: built-in steps and webhooks."""
