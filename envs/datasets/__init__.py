"""Data sets: one file each, defining ``load(source, split) -> Iterator[Task]``."""
