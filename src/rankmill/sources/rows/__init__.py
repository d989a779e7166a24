"""Rows as lists: long and wide rows, rows beyond memory, and facts of queries."""
