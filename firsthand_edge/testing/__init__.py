"""For tests, ours and those of whoever writes a driver or a store: a fake clock, fault scripts, conformance checks."""
