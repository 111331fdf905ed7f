"""How wrong are we on many devices? Public runs on 2 to 64 GPUs."""
