"""How wrong are we? Every method on every measured set, on rows that its fit did not see."""
