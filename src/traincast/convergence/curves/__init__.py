"""Learning curves: a law through what was logged, and where it leads."""
