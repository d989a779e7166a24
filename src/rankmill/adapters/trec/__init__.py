"""What prints and returns what trec_eval and pytrec_eval do, to the last byte."""
