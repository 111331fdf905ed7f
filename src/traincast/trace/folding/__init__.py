"""A model as a short step: blocks that repeat once, every sequence length, and back to ordinary traces."""
