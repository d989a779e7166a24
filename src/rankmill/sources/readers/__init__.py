"""The readers of the formats of files."""
