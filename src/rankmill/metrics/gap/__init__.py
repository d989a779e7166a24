"""What metrics over all predictions by confidence add up to: gap, curves, calibration."""
