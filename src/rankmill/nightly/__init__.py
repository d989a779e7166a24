"""What is done every night: rules, the history of runs, and the page of a run."""
