"""Run it on an existing engine: torchrun, Ray."""
