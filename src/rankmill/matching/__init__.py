"""Matching predictions with labels: the labels and their index, order, hits, ties."""
