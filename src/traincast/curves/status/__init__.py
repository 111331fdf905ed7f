"""A run at one moment, from its log: how far it is, when it ends, and what should make one look."""
