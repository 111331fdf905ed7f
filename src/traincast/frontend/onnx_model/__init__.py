"""ONNX files as torch modules, so that autograd gives their backward pass."""
