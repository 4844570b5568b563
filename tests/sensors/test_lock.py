import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand_edge.errors import DeviceError
from firsthand_edge.sensors import lock

ROOT = Path(__file__).resolve().parents[2]


def test_one_holder_at_a_time_and_its_end_lets_go(tmp_path):
    assert lock.holder(tmp_path, "head") is None
    script = (
        "import sys; from pathlib import Path; from firsthand_edge.sensors import lock\n"
        "lock.acquire(Path(sys.argv[1]), 'head'); sys.stdout.write('held\\n'); sys.stdout.flush(); sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert other.stdout.readline() == b"held\n"
    assert lock.holder(tmp_path, "head") == other.pid
    with pytest.raises(DeviceError, match=f"held by process {other.pid}, which is not ours; end it"):
        lock.acquire(tmp_path, "head", patience_s=0.05)
    other.kill()
    other.wait()
    other.stdin.close()
    other.stdout.close()
    assert lock.holder(tmp_path, "head") is None
    fd = lock.acquire(tmp_path, "head")
    assert lock.holder(tmp_path, "head") == os.getpid()
    os.close(fd)
