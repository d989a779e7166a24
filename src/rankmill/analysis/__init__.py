"""What is told of systems beyond their numbers: compared, explained, fused."""
