"""And on many devices? What it costs that they work together."""
