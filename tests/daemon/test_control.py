"""The control socket: whatever comes over it is answered, and nothing that comes over it ends the daemon."""

import threading

import msgpack
import pytest
import zmq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand_edge.daemon.control import ControlClient, ControlServer, RemoteError, address
from firsthand_edge.errors import DeviceSilent, DiskFull, UsageError


def full(**_arguments):
    raise DiskFull("the disk is full; make room")


HANDLERS = {"status": lambda: {"phase": "ready"}, "double": lambda value: 2 * value, "full": full}


@pytest.fixture
def server(tmp_path):
    server = ControlServer(tmp_path, HANDLERS)
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            server.poll(timeout_s=0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    yield tmp_path
    stop.set()
    thread.join()
    server.close()


def test_a_command_is_answered(server):
    with ControlClient(server) as client:
        assert client.call("status", timeout_s=5) == {"phase": "ready"}
        assert client.call("double", timeout_s=5, value=21) == 42


def test_a_refusal_keeps_its_code_its_status_and_its_sentence(server):
    with ControlClient(server) as client, pytest.raises(RemoteError, match="make room") as caught:
        client.call("full", timeout_s=5)
    assert (caught.value.code, caught.value.exit_status) == ("disk.full", 6)


@pytest.mark.parametrize(("command", "arguments"), [("fly", {}), ("double", {}), ("double", {"way": 1})])
def test_what_it_does_not_know_is_wrong_usage(server, command, arguments):
    with ControlClient(server) as client, pytest.raises(RemoteError, match="does not know") as caught:
        client.call(command, timeout_s=5, **arguments)
    assert caught.value.exit_status == UsageError.exit_status


def test_without_a_daemon_the_client_says_so(tmp_path):
    with ControlClient(tmp_path) as client, pytest.raises(DeviceSilent, match="did not answer `status`"):
        client.call("status", timeout_s=0.05)


def test_a_path_too_long_for_a_socket_is_told(tmp_path):
    with pytest.raises(UsageError, match="the kernel takes 107"):
        address(tmp_path / ("x" * 120))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=64),
        st.recursive(st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(), st.lists).map(msgpack.packb),
    )
)
def test_any_bytes_get_an_answer(server, message):
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address(server))
    socket.send(message)
    assert socket.poll(5000)
    assert set(msgpack.unpackb(socket.recv())) <= {"ok", "error"}
    socket.close()
    context.term()
