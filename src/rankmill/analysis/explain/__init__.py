"""The walk down one list, and why evaluators differ."""
