"""The training loop that all recipes share: seeded, logged, checkpointed, resumable to the bit on a CPU."""
