"""Weakly supervised pretraining on noisy tags (Mahajan et al. 2018, arXiv 1805.00932)."""
