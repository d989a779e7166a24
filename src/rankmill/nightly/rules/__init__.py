"""Rules that a system must keep: what they measure, and the verdict."""
