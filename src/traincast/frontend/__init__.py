"""What is trained? Each module turns one source (torch, Keras, ONNX, Hugging Face, the zoo) into a Trace."""
