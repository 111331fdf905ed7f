"""Transfer learning: a trained network, a new last layer, and which weights may still move."""
