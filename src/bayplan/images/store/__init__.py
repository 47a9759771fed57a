"""The image store on disk: content, snapshots, partial downloads and the catalogue."""
