"""Owned child processes: a process is a unit of failure, and no child outlives its owner.

Owner and child exchange frames over the child's stdin and stdout: a length (4 bytes, little-endian), then msgpack.
The owner sends requests `{id, command, arguments}`; the child answers each with `{id, ok, value}` or
`{id, error: {code, sentence}}`, and may send reports `{report: {...}}` at any time. End of file on stdin means that
the owner is gone: the child closes what it holds and is gone within a second, even from inside a call that hangs
(unless that call holds the interpreter's lock, which only a signal can end).

Neither side waits for a slow reader: reports that cannot be delivered are dropped and counted, replies never are.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgpack

from firsthand_edge.errors import ConfigInvalid, DeviceError, FirsthandError, UsageError

__all__ = ["Child", "Owner", "ProcessEnded", "ProcessSilent", "Ticket", "describe_exit", "serve"]

_LENGTH: Final = struct.Struct("<I")
_FRAME_MAX: Final = 64 * 1024 * 1024
_READ_SIZE: Final = 256 * 1024
_REPORTS_MAX: Final = 4096
_REPORT_BACKLOG_BYTES: Final = 256 * 1024
_GRACE_S: Final = 0.8
"""How long a child without owner may take to close before it is ended from the side."""

Ticket = int
"""Names a request that was posted and not yet answered."""


class ProcessEnded(DeviceError):
    """A child process ended while its answer was awaited."""

    code = "process.ended"


class ProcessSilent(DeviceError):
    """A child process is alive and does not answer within the time given."""

    code = "process.silent"


def _pack(message: Mapping[str, Any]) -> bytes:
    body: bytes = msgpack.packb(message)
    if len(body) > _FRAME_MAX:
        raise UsageError(f"a message of {len(body)} bytes is over the {_FRAME_MAX} of a frame; send a path instead")
    return _LENGTH.pack(len(body)) + body


class _Frames:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yields the messages that `data` completes."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > _FRAME_MAX:
                raise DeviceError(f"a frame of {size} bytes came over the control pipe; something else writes to it")
            end = _LENGTH.size + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield msgpack.unpackb(body, strict_map_key=False)


def _error_classes(root: type[FirsthandError] = FirsthandError) -> Iterator[type[FirsthandError]]:
    yield root
    for child in root.__subclasses__():
        yield from _error_classes(child)


def _error_of(code: str, sentence: str) -> FirsthandError:
    """The exception that a child raised, by its code; its own constructor is bypassed, the sentence is complete."""
    cls = next((c for c in _error_classes() if c.code == code), FirsthandError)
    error = cls.__new__(cls, sentence)
    if isinstance(error, ConfigInvalid):
        error.mistakes = ()
    return error


def describe_exit(status: int | None) -> str:
    """Says how a process ended: `signal 11 (SIGSEGV)`, `status 3`, or `still running` for None.

    Args:
        status: Return code as `subprocess` gives it: negative for a signal.
    """
    if status is None:
        return "still running"
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


class Child:
    """The owner's end: a running Python module that answers calls.

    Threads may share it: every method takes the same lock, so a long `call` makes the others wait. The child is its
    own process group (an interrupt on the owner's terminal does not reach it), sees no file of the owner but its
    three standard ones, and imports the very package that its owner runs.

    Args:
        module: What `python -m` runs; it must call `serve` or use `Owner`.
        args: Its arguments.
        name: For messages to people.
        log_path: File that its stderr (and whatever it prints) is appended to.
        env: Environment variables over those of this process.
    """

    def __init__(
        self,
        module: str,
        args: Sequence[str] = (),
        *,
        name: str,
        log_path: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self.reports_lost = 0
        self._lock = threading.RLock()
        self._frames = _Frames()
        self._next: Ticket = 0
        self._waiting: set[Ticket] = set()
        self._replies: dict[Ticket, dict[str, Any]] = {}
        self._reports: deque[dict[str, Any]] = deque()
        self._eof = False
        package_root = str(Path(__file__).resolve().parents[1])
        inherited = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": package_root + (os.pathsep + inherited if inherited else ""),
            **(env or {}),
        }
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=environment,
                process_group=0,
            )
        if self._process.stdin is None or self._process.stdout is None:
            raise DeviceError(f"the process {name} came up without its control pipes")
        self._to, self._from = self._process.stdin, self._process.stdout
        os.set_blocking(self._to.fileno(), False)
        os.set_blocking(self._from.fileno(), False)

    @property
    def pid(self) -> int:
        """Process id, also after the end."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def fileno(self) -> int:
        """File descriptor that becomes readable when the child says something or ends; then call `reports`."""
        return self._from.fileno()

    def exit_cause(self) -> str:
        """How it ended: `signal 11 (SIGSEGV)`, `status 3`, `still running`."""
        return describe_exit(self._process.poll())

    def call(self, command: str, *, timeout_s: float, **arguments: Any) -> Any:
        """Asks and waits for the answer.

        Raises:
            FirsthandError: What the child raised, as the same class.
            ProcessEnded: The child ended before it answered.
            ProcessSilent: No answer within `timeout_s`; a late one is thrown away.
        """
        return self.wait(self.post(command, **arguments), timeout_s=timeout_s)

    def post(self, command: str, **arguments: Any) -> Ticket:
        """Asks without waiting: many children can work at once. `wait` or `answer` takes the answer.

        Raises:
            ProcessEnded: The child is gone.
            ProcessSilent: The child takes nothing from its stdin.
        """
        with self._lock:
            self._next += 1
            self._write(_pack({"id": self._next, "command": command, "arguments": arguments}))
            self._waiting.add(self._next)
            return self._next

    def wait(self, ticket: Ticket, *, timeout_s: float) -> Any:
        """The answer to a posted request. Raises as `call` does."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            self._pump(0.0)  # what was answered while others were waited for counts, however little time is left
            while ticket not in self._replies:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._waiting.discard(ticket)
                    raise ProcessSilent(
                        f"{self.name} (pid {self.pid}) did not answer within {timeout_s:g} s; see {self.log_path}"
                    )
                if self._eof:
                    self._waiting.discard(ticket)
                    raise ProcessEnded(self._obituary())
                self._pump(left)
            return self._take(ticket)

    def answered(self, ticket: Ticket) -> bool:
        """Whether `wait` would return or raise at once. Never waits."""
        with self._lock:
            self._pump(0.0)
            return ticket in self._replies or self._eof

    def reports(self) -> list[dict[str, Any]]:
        """What the child reported since the last call, in order. Never waits; `reports_lost` counts what went over."""
        with self._lock:
            self._pump(0.0)
            out = list(self._reports)
            self._reports.clear()
            return out

    def stop(self, *, timeout_s: float = 3.0) -> str:
        """Closes the child's stdin, waits, kills what is still there. Safe twice. Returns `exit_cause`."""
        with self._lock:
            with contextlib.suppress(OSError):
                self._to.close()
            deadline = time.monotonic() + timeout_s
            while self.alive and time.monotonic() < deadline:
                # Its last words are read while it ends, so that it never waits for us.
                if self._eof:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(max(0.0, deadline - time.monotonic()))
                else:
                    self._pump(max(0.0, deadline - time.monotonic()))
            if self.alive:
                self._process.kill()
            self._process.wait()
            self._pump(0.0)
            self._from.close()
            return self.exit_cause()

    def kill(self) -> None:
        """SIGKILL, for a child that hangs. `stop` still has to be called."""
        if self.alive:
            self._process.kill()

    def _obituary(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        return f"{self.name} (pid {self.pid}) ended with {self.exit_cause()}; see {self.log_path}"

    def _take(self, ticket: Ticket) -> Any:
        reply = self._replies.pop(ticket)
        error = reply.get("error")
        if error is not None:
            raise _error_of(error["code"], error["sentence"])
        return reply.get("value")

    def _write(self, data: bytes, *, timeout_s: float = 5.0) -> None:
        deadline = time.monotonic() + timeout_s
        view = memoryview(data)
        while view:
            if self._to.closed:
                raise ProcessEnded(f"{self.name} (pid {self.pid}) was stopped; start it again before asking it")
            try:
                view = view[os.write(self._to.fileno(), view) :]
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ProcessSilent(f"{self.name} (pid {self.pid}) reads none of its commands") from None
                poller = select.poll()
                poller.register(self._to, select.POLLOUT)
                poller.poll(50)
                self._pump(0.0)
            except BrokenPipeError:
                self._pump(0.0)
                raise ProcessEnded(self._obituary()) from None

    def _pump(self, timeout_s: float) -> None:
        """Takes in what the child said; waits up to `timeout_s` for the first of it."""
        if self._eof or self._from.closed:
            self._eof = True
            return
        poller = select.poll()
        poller.register(self._from, select.POLLIN)
        if not poller.poll(max(0, int(timeout_s * 1000 + 0.999))):
            return
        while not self._eof:
            try:
                data = os.read(self._from.fileno(), _READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                self._eof = True
            for message in self._frames.feed(data):
                self._accept(message)

    def _accept(self, message: dict[str, Any]) -> None:
        report = message.get("report")
        if report is not None:
            if len(self._reports) >= _REPORTS_MAX:
                self._reports.popleft()
                self.reports_lost += 1
            self._reports.append(report)
            self.reports_lost += int(message.get("lost", 0))
        elif message["id"] in self._waiting:
            self._waiting.discard(message["id"])
            self._replies[message["id"]] = message


Handlers = Mapping[str, Callable[..., Any]]
Poll = Callable[[], float]
Wait = Callable[[int, float], None]


class Owner:
    """The child's end, made first thing in the child.

    From then on stdout belongs to the frames, and whatever else prints (the interpreter, an SDK in C) goes to the log
    with stderr. Single-threaded: commands are handled between two slices of work. A side thread only watches for the
    owner's end.
    """

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.enable()
        self._frames = _Frames()
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._lost = 0
        self.gone = False
        """Whether the owner is gone."""
        threading.Thread(target=self._watch, name="owner-watch", daemon=True).start()

    def fileno(self) -> int:
        """File descriptor that becomes readable when the owner says something or is gone."""
        return self._in

    def report(self, report: Mapping[str, Any]) -> None:
        """Tells the owner something unasked. Never waits: what an owner does not read is dropped and counted."""
        if self._pending_bytes > _REPORT_BACKLOG_BYTES:
            self._lost += 1
        else:
            self._send({"report": dict(report), "lost": self._lost})
            self._lost = 0

    def serve(self, handlers: Handlers, *, poll: Poll | None = None, wait: Wait | None = None) -> None:
        """Answers the owner until it is gone, then runs the handler `close`, if there is one, and returns.

        Args:
            handlers: Per command a function of the call's arguments; what it returns is the answer (msgpack types).
                `close` must be safe when called twice.
            poll: Does one slice of work and returns for how many seconds the loop may wait before the next one; 0 to
                go on at once. It should not take longer than 100 ms, or commands wait.
            wait: Waits until the file descriptor is readable or the seconds have passed; for children that have other
                things to wake up for, such as ZeroMQ sockets. Default: `select.poll`.
        """
        pause = 0.0 if poll else 3600.0
        try:
            while not self.gone:
                self._flush()
                if wait is not None:
                    wait(self._in, pause)
                else:
                    self._wait(pause)
                for request in self._receive():
                    self._answer(handlers, request)
                if poll is not None and not self.gone:
                    pause = poll()
        finally:
            if "close" in handlers:
                handlers["close"]()
            self._drain(timeout_s=0.2)

    def _wait(self, seconds: float) -> None:
        poller = select.poll()
        poller.register(self._in, select.POLLIN)
        if self._pending:
            poller.register(self._out, select.POLLOUT)
        poller.poll(max(0, int(seconds * 1000 + 0.999)))

    def _receive(self) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        while True:
            try:
                data = os.read(self._in, _READ_SIZE)
            except BlockingIOError:
                return out
            if not data:
                self.gone = True
                return out
            out.extend(self._frames.feed(data))

    def _answer(self, handlers: Handlers, request: dict[str, Any]) -> None:
        command = request["command"]
        try:
            if command not in handlers:
                sentence = f"there is no command {command}; there are {', '.join(sorted(handlers))}"
                self._send({"id": request["id"], "error": {"code": UsageError.code, "sentence": sentence}})
            else:
                self._send({"id": request["id"], "ok": True, "value": handlers[command](**request["arguments"])})
        except FirsthandError as error:
            self._send({"id": request["id"], "error": {"code": error.code, "sentence": str(error)}})
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the owner's to know; the child goes on
            traceback.print_exc()
            sentence = f"{command} failed with {type(error).__name__}: {error}"
            self._send({"id": request["id"], "error": {"code": FirsthandError.code, "sentence": sentence}})

    def _send(self, message: Mapping[str, Any]) -> None:
        data = _pack(message)
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._flush()

    def _flush(self) -> None:
        while self._pending:
            data = self._pending[0]
            try:
                written = os.write(self._out, data)
            except BlockingIOError:
                return
            except OSError:
                # Nobody reads any more; the end of stdin says the rest.
                self._pending.clear()
                self._pending_bytes = 0
                return
            self._pending_bytes -= written
            if written == len(data):
                self._pending.popleft()
            else:
                self._pending[0] = data[written:]

    def _drain(self, *, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        self._flush()
        while self._pending and time.monotonic() < deadline:
            poller = select.poll()
            poller.register(self._out, select.POLLOUT)
            poller.poll(20)
            self._flush()

    def _watch(self) -> None:
        """Ends the process when its owner has been gone for the time of grace and the loop did not end by itself."""
        poller = select.poll()
        poller.register(self._in, 0)  # a hang-up is reported without being asked for
        poller.poll()
        time.sleep(_GRACE_S)
        sys.stderr.write("the owner is gone and a call still hangs: ended from the side\n")
        sys.stderr.flush()
        os._exit(70)


def serve(handlers: Handlers, *, poll: Poll | None = None, wait: Wait | None = None) -> None:
    """`Owner().serve(...)` for a child that reports nothing by itself."""
    Owner().serve(handlers, poll=poll, wait=wait)
