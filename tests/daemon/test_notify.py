"""What systemd is told (sd_notify(3))."""

import socket

import pytest

from firsthand_edge.daemon.notify import notify


@pytest.mark.parametrize("abstract", [False, True])
def test_the_state_reaches_whoever_asked(tmp_path, monkeypatch, abstract):
    name = f"@firsthand-{tmp_path.name}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name[1:] if abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        assert notify("READY=1")
        assert sock.recv(64) == b"READY=1"


def test_nobody_asked(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
