"""A torch module runs one step on meta tensors and becomes a Trace."""
