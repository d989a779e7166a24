"""What is computed of the queries: sums, differences, intervals and tests."""
