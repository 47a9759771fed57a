"""A node's agent for images: its pods served, its disk kept, its gate's switches cleaned up."""
