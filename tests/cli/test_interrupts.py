"""An interrupt is raised where the program asks for it, and nowhere else."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from firsthand_edge.cli.interrupts import Interrupts


@pytest.fixture(autouse=True)
def own_handler():
    """The handler that this test run was started with is put back, whatever it was."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_waits_until_it_is_asked_for():
    with Interrupts() as interrupts:
        interrupts.check()
        interrupt()
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_that_nobody_asked_for_is_raised_at_the_end():
    with pytest.raises(KeyboardInterrupt), Interrupts():
        interrupt()


def test_an_error_under_way_is_not_replaced():
    def fails() -> None:
        with Interrupts():
            interrupt()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ignored_interrupts_stay_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts:
        interrupt()
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_thread_leaves_the_handler_alone():
    def work() -> None:
        with Interrupts() as interrupts:
            interrupts.check()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
