"""What is written, whole or not at all, and the stores that files are in."""
