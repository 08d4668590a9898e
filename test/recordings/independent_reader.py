"""
Reads and verifies a recording by docs/recording-format.md alone: python3 independent_reader.py FILE KEY-IN-HEX [ENTRY]
ENTRY is what the audit log has noted of it while it was written: SESSION:BYTES:DIGEST:MILLISECONDS (docs/events.md).
"""
import base64
import hashlib
import json
import struct
import sys
import zlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def frames_of(body, key):
    number, first, _last, count, compression = struct.unpack(">IQIIB", body[:21])
    assert compression == 0, "this reader has no zstd"
    plain = AESGCM(key).decrypt(bytes(8) + struct.pack(">I", number), body[24:], body[:24])
    assert len(plain) == int.from_bytes(body[21:24], "big")
    at, time, frames = 0, first, []
    while at < len(plain):
        kind = plain[at]
        channel, at = varint(plain, at + 1)
        delta, at = varint(plain, at)
        length, at = varint(plain, at)
        time += delta
        frames.append({"type": kind, "channel": channel, "time": time, "payload": plain[at : at + length].hex()})
        at += length
    assert len(frames) == count
    return frames


data = open(sys.argv[1], "rb").read()
noted = sys.argv[3].split(":") if len(sys.argv) > 3 else None
key = bytes.fromhex(sys.argv[2])
assert data[:8] == b"SPREC\r\n\x1a" and data[8:12] == b"\0\1\0\0"
at = 16 + int.from_bytes(data[12:16], "big")
metadata = json.loads(data[16:at])
link = sha256(data[:at])
assert data[at : at + 32] == link
at += 32
public = base64.b64decode(metadata["signing_public_key"])
assert sha256(public)[:8].hex() == metadata["signing_key"]
signer = Ed25519PublicKey.from_public_bytes(public)
session = metadata["session"].encode()

frames, sequence, checkpoints, kind = [], 0, 0, 0
while at < len(data):
    assert kind == 0, "a record behind the closing one"
    header = data[at : at + 12]
    body = data[at + 12 : at + 12 + int.from_bytes(header[1:4], "big")]
    assert int.from_bytes(header[8:], "big") == zlib.crc32(header[:8])
    assert int.from_bytes(header[4:8], "big") == sequence
    if header[0] == 1:
        frames += frames_of(body, key)
    else:
        statement = b"sallyport-recording\x01" + bytes([len(session)]) + session
        statement += struct.pack(">IQ", sequence, at) + link + body[:-64]
        signer.verify(body[-64:], statement)
        kind = body[0]
        checkpoints += 1
    link = sha256(link, header, sha256(body))
    at += 12 + len(body)
    assert data[at : at + 32] == link
    at += 32
    sequence += 1
    if noted and at == int(noted[1]):
        assert [metadata["session"], link.hex()] == [noted[0], noted[2]], "not what was noted"
        noted = None

assert noted is None, "it ends before what was noted"

json.dump({"kind": kind, "frames": frames, "digest": link.hex(), "checkpoints": checkpoints}, sys.stdout)
