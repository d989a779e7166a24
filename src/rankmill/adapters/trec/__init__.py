"""What stands in for trec_eval and pytrec_eval to the last byte, and a provider for ir_measures."""
