"""Op times on a CPU: a sum of work over measured rates, fitted on the machine itself."""
