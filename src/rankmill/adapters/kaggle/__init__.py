"""The functions of `rankmill.kaggle`: a file each for one query, for many, and for gap."""
