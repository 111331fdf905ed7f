"""The zoo: well-known networks in PyTorch, one family a file, and the registry that names them."""
