"""The values of the queries of all systems, side by side."""
