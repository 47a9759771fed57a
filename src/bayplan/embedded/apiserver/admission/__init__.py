"""Admission: what may look at, change or refuse a write before it is stored."""
