"""What travels as rows: fields that are checked, counts of items, fingerprints."""
