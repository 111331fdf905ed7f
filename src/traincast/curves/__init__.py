"""How many steps until it is good enough: curves fitted to logs, and what follows from them."""
