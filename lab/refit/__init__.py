"""Fits what traincast has learned, from public measurements: `python -m lab.refit.kernels --data DIR`, and so on."""
