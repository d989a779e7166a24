"""What metrics add up to over many queries."""
