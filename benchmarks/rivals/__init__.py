"""What rankmill is compared with: one module each, run by ``benchmarks/peers.py``."""
