"""Listwise average precision as a loss."""
