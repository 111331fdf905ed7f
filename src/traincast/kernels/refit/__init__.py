"""Fits the coefficients of our predictor to public measurements: `python -m traincast.kernels.refit --data DIR`."""
