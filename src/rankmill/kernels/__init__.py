"""Compiled functions: arrays in, arrays out, which they trust."""
