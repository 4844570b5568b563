"""The control socket of the daemon: a Unix socket, one request and one reply at a time, msgpack both ways.

A request is `[command, {argument: value}]`, a reply `{"ok": value}` or `{"error": {code, exit_status, sentence}}`.
Nothing here listens on a network.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import msgpack
import zmq

from firsthand_edge.errors import DeviceSilent, FirsthandError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["ControlClient", "ControlServer", "RemoteError"]

SLICE_S = 0.1
LONGEST_PATH = 107
"""Bytes of a Unix socket's path (sun_path of unix(7), without its terminating zero)."""


class RemoteError(FirsthandError):
    """What the daemon answered when it refused; carries the code and the exit status of the original."""

    def __init__(self, code: str, exit_status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code  # type: ignore[misc]  # an instance speaks for the class that the daemon raised
        self.exit_status = exit_status  # type: ignore[misc]


def address(run_dir: Path) -> str:
    """The socket's address, or a sentence when the path is longer than the kernel takes."""
    path = str(run_dir.absolute() / "control.ipc")
    if len(path.encode()) > LONGEST_PATH:
        raise UsageError(
            f"the path of the control socket has {len(path.encode())} bytes and the kernel takes {LONGEST_PATH} "
            f"({path}); choose a state directory with a shorter path"
        )
    return f"ipc://{path}"


class ControlServer:
    """The daemon's end. `poll` answers at most one request and never blocks longer than asked."""

    def __init__(self, run_dir: Path, handlers: Mapping[str, Callable[..., Any]]) -> None:
        self._handlers = handlers
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 200)
        self._socket.bind(address(run_dir))

    def poll(self, *, timeout_s: float) -> None:
        """Answers one request if one comes within `timeout_s`."""
        if not self._socket.poll(round(timeout_s * 1000)):
            return
        self._socket.send(msgpack.packb(self._answer(self._socket.recv())))

    def _answer(self, message: bytes) -> dict[str, Any]:
        try:
            command, arguments = msgpack.unpackb(message)
            handler = self._handlers[command]
            return {"ok": handler(**arguments)}
        except FirsthandError as exc:
            return _error(exc.code, exc.exit_status, str(exc))
        except (ValueError, KeyError, TypeError, msgpack.UnpackException) as exc:
            return _error("usage", 2, f"the control socket was asked for something it does not know ({exc!r})")

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()
        self._context.term()


def _error(code: str, exit_status: int, sentence: str) -> dict[str, Any]:
    return {"error": {"code": code, "exit_status": exit_status, "sentence": sentence}}


class ControlClient:
    """Anybody's end: the command line, the button, a test."""

    def __init__(self, run_dir: Path) -> None:
        self._address = address(run_dir)
        self._context = zmq.Context()

    def call(
        self, command: str, *, timeout_s: float, meanwhile: Callable[[], None] | None = None, **arguments: Any
    ) -> Any:
        """Asks once and waits for the answer.

        Args:
            command: What to do.
            timeout_s: How long to wait.
            meanwhile: Called ten times a second while waiting; may raise, as when the daemon has ended.
            **arguments: Of the command.

        Raises:
            DeviceSilent: when no daemon answers in time.
            RemoteError: when the daemon refuses; carries its code, exit status and sentence.
        """
        socket = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        try:
            socket.connect(self._address)
            socket.send(msgpack.packb([command, arguments]))
            deadline = time.monotonic() + timeout_s
            while not socket.poll(round(1000 * max(0.0, min(SLICE_S, deadline - time.monotonic())))):
                if meanwhile is not None:
                    meanwhile()
                if time.monotonic() < deadline:
                    continue
                raise DeviceSilent(
                    f"the daemon at {self._address} did not answer `{command}` within {timeout_s:g} s; "
                    "see whether it runs and what its log says"
                )
            reply = msgpack.unpackb(socket.recv())
        finally:
            socket.close()
        if "error" in reply:
            raise RemoteError(**reply["error"])
        return reply["ok"]

    def close(self) -> None:
        """Closes the client."""
        self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
