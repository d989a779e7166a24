"""Results, and the audit: what was counted."""
