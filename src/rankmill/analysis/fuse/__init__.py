"""The lists of several systems, fused into one list a query."""
