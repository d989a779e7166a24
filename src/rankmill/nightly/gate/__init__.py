"""Rules that a system must keep, against a baseline, and what comes of them."""
