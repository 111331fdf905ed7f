"""Hugging Face configs as models on meta tensors, with their own loss."""
