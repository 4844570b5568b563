"""The contract that takes are recorded under: who signed it, whether the rig fits it, and since when it is in force.

An unsigned or altered spec starts no take. A rig that records nobody may sign its spec itself, with a throw-away key
made at set-up; the signed copy lies in the state directory, never beside the spec, and every manifest says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.durable import disk_errors, make_folder, replace
from firsthand_edge.errors import SpecUnsigned
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signed import add_signature, load_signatures, signature_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from firsthand_edge.daemon.rig import LoadedRig
    from firsthand_edge.model import DeviceInfo, StreamInfo
    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spec.signed import SpecSignature
    from firsthand_edge.spec.streams import StreamSpec

__all__ = ["Contract", "accept", "different_collection", "misfits"]

THROW_AWAY: Final = "throw-away"
"""Folder of the key, below the state directory's `keys`."""
SIGNED_COPY: Final = "contract"
"""Folder of the signed copy of the spec, below the state directory."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A spec that is in force on this rig."""

    spec: Spec
    signatures: tuple[SpecSignature, ...]
    throw_away: bool

    def identity(self) -> dict[str, Any]:
        """What evidence and manifest say of it."""
        return {
            "id": self.spec.id,
            "version": self.spec.version,
            "digest": self.spec.digest,
            "signatures": [one.to_json() for one in self.signatures],
            "throw_away": self.throw_away,
        }

    def row(self) -> dict[str, Any]:
        """What the chain says of it."""
        return {
            "id": self.spec.id,
            "version": self.spec.version,
            "digest": self.spec.digest,
            "signers": [one.key_id for one in self.signatures],
            "throw_away": self.throw_away,
        }


def accept(loaded: LoadedRig, state_dir: Path) -> Contract:
    """The rig file's spec, found to be signed by everyone who has to.

    Args:
        loaded: Rig file and spec.
        state_dir: Where a throw-away key and its signature are kept.

    Raises:
        SpecUnsigned: it is not signed by everyone whom the rig file names, or was altered since.
        SpecInvalid: its signatures cannot be read.
        ConfigInvalid: the throw-away key cannot be used.
        DiskFull, DiskError: key or signature cannot be written.
    """
    contract = loaded.file.contract
    if contract.throw_away_key:
        return Contract(loaded.spec, (_sign_a_copy(loaded, state_dir),), throw_away=True)
    signatures = load_signatures(loaded.spec_path)
    required = [bytes.fromhex(key) for key in contract.signers or ()]
    faults = signature_faults(loaded.spec, signatures, required)
    if faults:
        raise SpecUnsigned(f"{loaded.spec_path} (signers: {loaded.path})", faults)
    return Contract(loaded.spec, signatures, throw_away=False)


def _sign_a_copy(loaded: LoadedRig, state_dir: Path) -> SpecSignature:
    """Signs a copy of the spec with the rig's throw-away key; whoever wants to can verify copy and signature."""
    key = KeyPair.load_or_create(state_dir / "keys" / THROW_AWAY)
    copy = state_dir / SIGNED_COPY / loaded.spec_path.name
    with disk_errors(f"the copy of the spec in {copy.parent} cannot be written"):
        make_folder(copy.parent)
        if not copy.exists() or copy.read_bytes() != loaded.spec_document:
            replace(copy, loaded.spec_document)
    return add_signature(copy, key)


def different_collection(before: Mapping[str, Any], now: Contract) -> str:
    """What is to be said when the spec of this rig's last takes was another one.

    Args:
        before: The identity in the chain's last `spec` row.
        now: The spec from now on.
    """
    spec = now.spec
    return (
        f"this is a different collection: takes were recorded under spec {before.get('id')} version "
        f"{before.get('version')} ({before.get('digest')}), from now on they are recorded under spec {spec.id} version "
        f"{spec.version} ({spec.digest}); figures of the two cannot be put together"
    )


def misfits(spec: Spec, devices: Iterable[DeviceInfo]) -> list[str]:
    """Where the devices of a rig do not fit its spec, as sentences; empty when they do.

    What sensors deliver is live by construction (`provenance`): a derived stream is made afterwards, from the footage.
    """
    there = [(device, stream) for device in devices for stream in device.streams]
    names = [stream.name for _, stream in there]
    out = [f"{name} comes from two devices" for name in sorted({name for name in names if names.count(name) > 1})]
    out += [
        f"no device delivers {stream.name}, which the spec requires"
        for stream in spec.streams
        if stream.required and stream.provenance != "derived" and stream.name not in names
    ]
    for device, stream in there:
        asked = spec.stream(stream.name)
        if asked is not None:
            out += _stamp_faults(asked, device, stream)
    return out


def _stamp_faults(asked: StreamSpec, device: DeviceInfo, stream: StreamInfo) -> Iterator[str]:
    domain, point = device.domain.name.lower(), stream.stamp_point
    if asked.stamp_domains is not None and domain not in asked.stamp_domains:
        yield (
            f"{stream.name} of {device.name} is stamped by the clock `{domain}`, and the spec takes "
            f"{' or '.join(asked.stamp_domains)}"
        )
    if asked.stamp_points is not None and point not in asked.stamp_points:
        yield (
            f"{stream.name} of {device.name} is stamped at `{point.value}` of the exposure, and the spec takes "
            f"{' or '.join(one.value for one in asked.stamp_points)}"
        )
    if asked.provenance == "derived":
        yield f"{device.name} delivers {stream.name} live, and the spec wants it derived"
