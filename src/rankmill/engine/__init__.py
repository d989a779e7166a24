"""The job: read labels, score blocks, add them up, finish."""
