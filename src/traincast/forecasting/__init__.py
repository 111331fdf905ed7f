"""What will this run take? Trace, device, kernels and memory put together."""
