"""Trains the networks that predict layer by layer, and scores them: `python -m lab.refit.layerwise.train --help`."""
