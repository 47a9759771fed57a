"""What requests do to objects: create, read, change, delete, watch; without a word of HTTP."""
