"""How long does each op take on a device? Four methods behind one interface, and the timelines they feed."""
