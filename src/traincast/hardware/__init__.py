"""Where does it run? Devices and their figures."""
