"""The framework of the simulated cluster's controllers.

Read `controller` first (input and output of a controller), then `engine` and `sink` (how it is
called and how its plans are executed).
"""
