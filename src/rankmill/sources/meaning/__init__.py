"""What columns mean: one set of rules for all readers."""
