"""What has nothing to do with Kubernetes: clocks, the virtual event loop, pacing, durations, plain
values, configuration files and suggestions for misspelt words.
"""
