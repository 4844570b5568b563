"""Standard output and standard error: an exit status is the verdict's, whatever becomes of the pipe.

Commands print as usual; `guarded` stands between them and the stream. A reader that has gone (`| head -1`) is no fault:
what remains to be said is dropped. A stream that cannot be written otherwise (a full disk) is an error of the disk.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from firsthand_edge.errors import DiskError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Output", "complain", "guarded", "reader_gone", "write_document"]


class Output:
    """A text stream whose reader may leave. Everything that it does not do itself is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = False
        self.reader_gone = False
        """Nobody reads any more."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes `text`. Raises DiskError when the stream takes no more."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Writes `data` as it is, whatever the stream's encoding. Raises DiskError as `write`."""

        def write() -> None:
            self._stream.flush()
            self._stream.buffer.write(data)

        self._attempt(write)

    def flush(self) -> None:
        """Hands on what is buffered. Raises DiskError as `write`."""
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[[], object]) -> None:
        if self._lost:
            return
        try:
            action()
        except (BrokenPipeError, ConnectionResetError):
            self._lost = self.reader_gone = True
            _discard(self._stream)
        except OSError as exc:
            self._lost = True
            _discard(self._stream)
            raise DiskError(
                f"standard output cannot be written ({exc.strerror or exc}); send it where there is room"
            ) from exc


def _discard(stream: TextIO) -> None:
    """Lets what is still buffered go nowhere; the interpreter's own flush at its end would change the exit status."""
    with suppress(OSError, ValueError):  # a stream without a descriptor has nothing to be flushed to
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


@contextmanager
def guarded() -> Iterator[Output]:
    """Puts an `Output` in the place of standard output; flushes it at the end.

    What the streams' encoding cannot express is written as an escape, so that no name ends a command.

    Raises:
        DiskError: when standard output is closed or cannot be written.
    """
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
    stdout = cast("TextIO | None", sys.stdout)
    if stdout is None:
        raise DiskError("standard output is closed; send it to a terminal, a file or /dev/null")
    out = Output(stdout)
    with redirect_stdout(cast("TextIO", out)):
        try:
            yield out
        except BaseException:
            with suppress(DiskError):  # the first error is the one to be told
                out.flush()
            raise
        out.flush()


def reader_gone() -> bool:
    """Whether nobody reads standard output any more."""
    stream: object = sys.stdout
    return isinstance(stream, Output) and stream.reader_gone


def write_document(data: bytes) -> None:
    """Writes a document's bytes to standard output, the same under every locale."""
    stream: object = sys.stdout
    if isinstance(stream, Output):
        stream.write_bytes(data)
    else:
        sys.stdout.write(data.decode())


def complain(sentence: str) -> None:
    """Says what is wrong on standard error; when that cannot be written, the exit status has to do.

    Names of unknown origin are in it: what would steer a terminal is written as an escape.
    """
    from firsthand_edge.qa.printable import printable

    stderr = cast("TextIO | None", sys.stderr)
    if stderr is None:
        return
    try:
        print("\n".join(map(printable, sentence.split("\n"))), file=stderr, flush=True)
    except OSError:
        _discard(stderr)
