"""What the simulated cluster's controllers stand on: a view, decisions as values, one sink, one
engine that works in real or in virtual time.
"""
