"""Keras models on the torch backend as modules that can be captured."""
