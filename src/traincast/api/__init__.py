"""What Python users call; the command line calls the same."""
