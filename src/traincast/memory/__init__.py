"""Does it fit? Peak bytes of a training step by kind."""
