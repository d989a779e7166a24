"""Inputs: open a source of any kind, find its columns and turn its rows into ranked lists."""
