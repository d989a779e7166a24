"""The runs of a history: their files, trends and pictures."""
