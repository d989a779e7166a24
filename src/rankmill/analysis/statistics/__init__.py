"""Tests, intervals and distributions, which know no system."""
