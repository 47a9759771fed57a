"""What our own servers have in common: certificates, sockets, and bounds on what they are sent."""
