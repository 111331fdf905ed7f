"""What files do to traincast: small valid ones of every kind, damaged at random, and given to the real commands."""
