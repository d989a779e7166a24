"""What is told of systems beyond their numbers: compared and explained."""
