"""And for a cluster with many jobs? Jobs, machines, policies that divide them, and a simulator, exact in time."""
