"""Inputs of any kind, opened: labels, predictions, items and their vectors."""
