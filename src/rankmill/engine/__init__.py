"""The steps of a job: read labels, score blocks, add them up, finish the result."""
