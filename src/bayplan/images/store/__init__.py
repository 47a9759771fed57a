"""What is kept on the disk: content by digest, chains of unpacked layers, and the catalogue."""
