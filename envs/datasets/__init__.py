"""Data sets: one file each, defining ``load(source, split) -> Iterator[Task]``.

`source` is the data set's name, or a local path where the user gave one. Optional in an adapter: ``NAMES``, a
tuple of further names it answers to, and ``claims(path, columns) -> int``, how sure it is that a local path is
its own (0 no … 100 certain; `columns` are the field names of the first row, empty for a folder).
"""
