"""Names of the images that `acidtest images build` makes. Published images have names of their own."""

from __future__ import annotations

import re

TREE = "/testbed"
VENV = "/opt/venv"


def image_name(instance_id: str) -> str:
    """Image of a row that was built from a source distribution, e.g. ``acidtest/sdist.django__django-16801:latest``."""
    return f"acidtest/sdist.{safe_name(instance_id)}:latest"


def safe_name(text: str) -> str:
    """Lower case, and only what a repository name may hold ("__" is allowed, "--" too)."""
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    return re.sub(r"_{3,}", "__", re.sub(r"\.{2,}", ".", name)).strip("._-")
