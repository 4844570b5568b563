"""An owner that can be killed: starts a child a mode, says their pids, waits. `... LOG MODE...`."""

import sys
import time
from pathlib import Path

from firsthand_edge.process import Child

children = [
    Child("tests.process_children", [mode, sys.argv[1] + "." + mode], name=mode, log_path=Path(sys.argv[1]))
    for mode in sys.argv[2:]
]
for child in children:
    child.call("echo", timeout_s=20)
    if child.name == "hangs":
        child.post("sleep", seconds=3600)
sys.stdout.write(" ".join(str(child.pid) for child in children) + "\n")
sys.stdout.flush()
time.sleep(3600)
