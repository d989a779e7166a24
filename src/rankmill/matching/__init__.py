"""Where predictions are right: labels and their index, order, hits, ties."""
