"""What torch.compile's default compiler, Inductor, makes of a lowered step."""
