"""Labelled images from anywhere, in batches that depend on a seed, an epoch and a step alone."""
