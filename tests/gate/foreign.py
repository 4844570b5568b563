"""Other people's MCAP recordings, written with the public `mcap` package."""

import json
import struct

from mcap.writer import Writer

IMAGE_ROS2 = (
    b"# an image\nstd_msgs/Header header # stamp in it\nuint32 height\n====\nMSG: std_msgs/Header\nstring frame_id\n"
)
IMU_ROS2 = b"std_msgs/msg/Header header\ngeometry_msgs/Vector3 linear_acceleration\n"
LOG_ROS2 = b"byte DEBUG=10\nbuiltin_interfaces/Time stamp\nstring msg\n"
STRING_ROS2 = b"string data\n"
IMAGE_ROS1 = b"Header header\nuint32 height\n"

IMAGE_IDL = b"""\
================================================================================
IDL: builtin_interfaces/msg/Time
module builtin_interfaces { module msg { struct Time { int32 sec; uint32 nanosec; }; }; };
================================================================================
IDL: std_msgs/msg/Header
#include "builtin_interfaces/msg/Time.idl"
module std_msgs {
  module msg {
    struct Header {
      builtin_interfaces::msg::Time stamp;
      string frame_id;
    };
  };
};
================================================================================
IDL: sensor_msgs/msg/Image
#include "std_msgs/msg/Header.idl"
module sensor_msgs {
  module msg {
    @verbatim (language="comment", text="an uncompressed image; (0, 0) is the top left corner")
    struct Image {
      @verbatim (language="comment", text="Header timestamp should be acquisition time of image")
      std_msgs::msg::Header header;
      uint32 height;
    };
  };
};
"""


def cdr(stamp_ns, rest=b"\x00" * 16, *, order="<"):
    """A CDR message that begins with a Header or a Time."""
    head = b"\x00\x01\x00\x00" if order == "<" else b"\x00\x00\x00\x00"
    return head + struct.pack(f"{order}iI", stamp_ns // 10**9, stamp_ns % 10**9) + rest


def ros1(stamp_ns, seq=7):
    """A ROS 1 message that begins with a Header."""
    return struct.pack("<III", seq, stamp_ns // 10**9, stamp_ns % 10**9) + b"\x00" * 8


def text_json(stamp_ns):
    """A foxglove JSON message."""
    return json.dumps({"timestamp": {"sec": stamp_ns // 10**9, "nsec": stamp_ns % 10**9}, "data": ""}).encode()


def protobuf_image(stamp_ns):
    """A foxglove.CompressedImage in protobuf."""
    from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
    from google.protobuf.timestamp_pb2 import Timestamp

    stamp = Timestamp(seconds=stamp_ns // 10**9, nanos=stamp_ns % 10**9)
    return CompressedImage(timestamp=stamp, data=b"\xff" * 64, format="jpeg").SerializeToString()


def flatbuffer_schema(name):
    """The reflection schema of a foxglove flatbuffer, as recordings hold it."""
    from importlib.resources import files

    return (files("foxglove_schemas_flatbuffer") / f"{name}.bfbs").read_bytes()


def flatbuffer_image(stamp_ns):
    """A foxglove.CompressedImage as a flatbuffer; None leaves its stamp unset."""
    import flatbuffers
    from foxglove_schemas_flatbuffer import CompressedImage as Image
    from foxglove_schemas_flatbuffer.Time import CreateTime

    builder = flatbuffers.Builder(256)
    data = builder.CreateByteVector(b"\xff" * 64)
    form = builder.CreateString("jpeg")
    Image.Start(builder)
    if stamp_ns is not None:
        Image.AddTimestamp(builder, CreateTime(builder, stamp_ns // 10**9, stamp_ns % 10**9))
    Image.AddData(builder, data)
    Image.AddFormat(builder, form)
    builder.Finish(Image.End(builder))
    return bytes(builder.Output())


def protobuf_schema():
    """The file descriptor set of foxglove.CompressedImage, as recordings hold it."""
    from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files = FileDescriptorSet()
    done = set()

    def add(descriptor):
        for dependency in descriptor.dependencies:
            add(dependency)
        if descriptor.name not in done:
            done.add(descriptor.name)
            descriptor.CopyToProto(files.file.add())

    add(CompressedImage.DESCRIPTOR.file)
    return files.SerializeToString()


class Bag:
    """Writes one file; messages go in the order of their log times."""

    def __init__(self, path):
        self.path = path
        self._topics = []
        self._messages = []

    def topic(self, name, schema_name, schema, *, encoding="cdr", schema_encoding="ros2msg", metadata=None):
        self._topics.append((name, schema_name, schema, encoding, schema_encoding, metadata or {}))
        return self

    def add(self, name, log_ns, data, *, publish_ns=None):
        self._messages.append((log_ns, name, data, log_ns if publish_ns is None else publish_ns))
        return self

    def write(self, *, in_order=True, **options):
        with self.path.open("wb") as file:
            writer = Writer(file, **options)
            writer.start()
            ids = {}
            for name, schema_name, schema, encoding, schema_encoding, metadata in self._topics:
                schema_id = writer.register_schema(schema_name, schema_encoding, schema) if schema_name else 0
                ids[name] = writer.register_channel(name, encoding, schema_id, metadata)
            messages = sorted(self._messages, key=lambda m: m[0]) if in_order else self._messages
            for number, (log_ns, name, data, publish_ns) in enumerate(messages):
                writer.add_message(ids[name], log_ns, data, publish_ns, number)
            writer.finish()
        return self.path
