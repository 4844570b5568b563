"""The seam for devices, one file a driver, the worker process of a device and its supervisor."""
