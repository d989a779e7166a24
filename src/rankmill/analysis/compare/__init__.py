"""Systems side by side, joined by query id."""
