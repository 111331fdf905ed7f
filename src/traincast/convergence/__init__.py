"""How many steps until it is good enough: logs, curves, and what follows from them."""
