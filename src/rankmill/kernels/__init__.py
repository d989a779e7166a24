"""Compiled functions. They take arrays, write arrays, and do not check their arguments."""
