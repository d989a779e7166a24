"""Inputs: each kind of source yields the same batches; columns are found and turned into lists."""
