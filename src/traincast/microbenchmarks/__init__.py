"""How long does one layer or one op take alone? Random ones, timed on this machine."""
