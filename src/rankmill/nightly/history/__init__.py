"""The history of runs, and how one is recorded."""
