"""What the images of a data set need of this machine: presence, architecture, disk."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from ..envs.sandboxes._engine import Engine

GUESS_BYTES = 2_000_000_000
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, kw_only=True)
class ImageCheck:
    """missing: image names not on this machine; foreign: image -> its architecture, where it is not the engine's.

    present_bytes: disk that the present ones take, shared layers once. forecast_bytes: what the missing ones will
    take, by the average of the present ones or, where none is, 2 GB each. free_bytes: None where unknown (remote).
    """

    images: int
    missing: tuple[str, ...]
    foreign: dict[str, str]
    present_bytes: int
    forecast_bytes: int
    free_bytes: int | None

    def __str__(self) -> str:
        there = self.images - len(self.missing)
        lines = [f"{there} of {self.images} images are here, {self.present_bytes / 1e9:.1f} GB"]
        lines += [f"missing: {name}" for name in self.missing]
        lines += [f"for {machine}, not this machine: {name}" for name, machine in self.foreign.items()]
        if self.missing:
            free = "unknown" if self.free_bytes is None else f"{self.free_bytes / 1e9:.0f} GB"
            lines.append(f"the missing ones will take about {self.forecast_bytes / 1e9:.1f} GB; free: {free}")
        return "\n".join(lines)


def check_images(images: Iterable[str | None]) -> ImageCheck:
    """Look every distinct image up at the engine. Raises EngineUnavailable, EngineTimeout."""
    wanted = sorted({image for image in images if image})
    engine = Engine()
    try:
        info = engine.info()
        machine = MACHINES.get(info.get("Architecture", platform.machine()), info.get("Architecture", ""))
        found = {image: engine.image(image) for image in wanted}
        taken = _bytes(engine.history(image) for image, data in found.items() if data)
        root = info.get("DockerRootDir") if engine.local else None
    finally:
        engine.close()
    present = {image: data for image, data in found.items() if data}
    missing = tuple(image for image, data in found.items() if not data)
    each = taken / len(present) if present else GUESS_BYTES
    return ImageCheck(
        images=len(wanted),
        missing=missing,
        foreign={i: data["Architecture"] for i, data in present.items() if data["Architecture"] != machine},
        present_bytes=taken,
        forecast_bytes=int(each * len(missing)),
        free_bytes=_free(root),
    )


def _bytes(histories: Iterable[list[tuple[str, int, int]]]) -> int:
    """Bytes of all images with what they share counted once: equal beginnings of their histories are shared."""
    seen: set[tuple[tuple[str, int, int], ...]] = set()
    total = 0
    for history in histories:
        for depth in range(1, len(history) + 1):
            beginning = tuple(history[:depth])
            if beginning not in seen:
                seen.add(beginning)
                total += beginning[-1][2]
    return total


def _free(root: object) -> int | None:
    try:
        return shutil.disk_usage(str(root)).free if root else None
    except OSError:
        return None
