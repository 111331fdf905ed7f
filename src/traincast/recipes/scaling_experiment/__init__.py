"""Epochs on 1, 2, 4 ... devices at several batch sizes, really trained: time, speedup, communication, bandwidth."""
