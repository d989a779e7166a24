"""How far a ranking of systems holds."""
