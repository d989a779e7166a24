"""The slices that queries are cut into."""
