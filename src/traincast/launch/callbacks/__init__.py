"""Callbacks for Trainer, Lightning and Keras: they write a log that traincast reads, and tell when the run ends."""
