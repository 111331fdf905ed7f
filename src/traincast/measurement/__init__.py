"""What really happened? Real steps on the user's machine, timed right and kept."""
