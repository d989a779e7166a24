"""Where bytes come from: files found, opened and told apart, and text in blocks of lines."""
