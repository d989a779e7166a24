"""What everything else is made of: ids, ragged lists, ranked lists, numbers."""
