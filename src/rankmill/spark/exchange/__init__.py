"""What a driver asks of tasks, and how rows travel to them and back."""
