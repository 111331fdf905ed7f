"""Who gets how many devices, and where: one file a policy."""
