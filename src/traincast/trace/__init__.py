"""What does one training step ask of a device? The trace: ops with shapes, dtypes, phase and module."""
