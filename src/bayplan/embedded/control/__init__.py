"""What the simulated cluster's controllers stand on. Read `controller` first: what a controller is
given and answers; then `engine` and `sink`: how it is asked, and how its plans are carried out.
"""
