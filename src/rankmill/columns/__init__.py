"""The data structures that all other folders use: ids, ragged lists, ranked lists, numbers."""
