"""Results and audits, the tables they are shown as, and files written whole or not at all."""
