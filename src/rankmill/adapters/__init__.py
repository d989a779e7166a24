"""What stands in for other libraries, with their names: notebooks of Kaggle, PyTorch."""
