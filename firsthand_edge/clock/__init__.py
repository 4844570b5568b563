"""Device time and host time to rig time."""
