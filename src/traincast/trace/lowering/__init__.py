"""From the neutral trace to what a backend runs for a precision and an optimizer."""
