"""A comparison as text, tables and pictures."""
