"""Training logs of any origin, read into series of one global step."""
