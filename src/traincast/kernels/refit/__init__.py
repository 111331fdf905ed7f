"""Fits the coefficients of our predictor to public measurements, for the fits without a GPU that `compare` makes."""
