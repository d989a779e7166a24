"""How anything is shown: tables, what writes them, pictures."""
