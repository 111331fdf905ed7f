"""Fits what other runs tell of a run before it has shown it: `python -m lab.refit.curves --data DIR`."""
