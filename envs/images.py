"""Images that the product builds from source trees."""

from __future__ import annotations


def image_name(instance_id: str) -> str:
    """The image of a SWE-bench instance built on a PyPI source distribution."""
    return f"acidtest/sdist.{instance_id}:latest".lower()
