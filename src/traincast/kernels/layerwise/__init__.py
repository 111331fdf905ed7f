"""One layer at a time: a network learnt from timed layers, and the sum of its answers (after Justus et al. 2018)."""
