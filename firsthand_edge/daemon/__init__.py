"""The processes of a rig: `captured` owns takes, `recorder` owns the sockets and the disk, `uploadd` owns the store."""
