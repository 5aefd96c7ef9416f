"""Read an offline wandb run back: LevelDB log framing of `wandb.proto.wandb_internal_pb2.Record`."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = 32768
HEADER = 7  # crc32c (4), length (2), type (1)
FILE_HEADER = 7  # ":W&B", magic (2), version (1)


def blobs(path: Path) -> Iterator[bytes]:
    """The records' bytes. Types: 1 full, 2 first, 3 middle, 4 last; blocks of 32 KiB, a short tail is padding."""
    data = path.read_bytes()
    assert data[:4] == b":W&B"
    at, parts = FILE_HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + HEADER])
        body = data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        parts = body if kind in (1, 2) else parts + body
        if kind in (1, 4):
            yield parts


def records(path: Path) -> list[Any]:
    from wandb.proto import wandb_internal_pb2 as pb

    found = []
    for blob in blobs(path):
        record = pb.Record()
        record.ParseFromString(blob)
        found.append(record)
    return found


def history(path: Path) -> list[dict[str, Any]]:
    """The logged rows, as dicts."""
    rows = []
    for record in records(path):
        if record.WhichOneof("record_type") == "history":
            rows.append(
                {
                    (item.key or ".".join(item.nested_key)): json.loads(item.value_json)
                    for item in record.history.item
                }
            )
    return rows


def run_file(folder: Path, timeout_s: float = 30.0) -> Path:
    """The one offline run under `folder`, complete: wandb's core may still be writing when `finish` returns."""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        if any(record.HasField("exit") for record in records(path)):
            return path
        time.sleep(0.05)
    raise TimeoutError(f"{path} has no exit record after {timeout_s} s")
