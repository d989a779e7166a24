"""What every source is: batches of rows, streams of them, and the role of each column."""
