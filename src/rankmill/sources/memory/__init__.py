"""Inputs that are in memory: tables, frames and Python objects."""
