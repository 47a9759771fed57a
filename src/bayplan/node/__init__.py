"""What a node can attach, by its type, and publishing it: see docs/node.md."""
