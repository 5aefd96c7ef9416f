"""Reading rows of local files and of the hub, and fields of rows, with errors that name file, row and field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import pyast
from ..errors import ConfigError, TaskError

Row = Mapping[str, Any]


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, row) of a .parquet, .jsonl or .json file; `where` is "file:line" for error messages."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        for number, row in enumerate(pq.read_table(path).to_pylist()):
            yield f"{path.name}: row {number}", row
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        yield from _json_rows(path, text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path.name}: line {number}"
            yield where, _object(where, _parse(where, line))


def rows_of(source: str, hubs: Mapping[str, str], split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, row) of a local file, or else of the hub's data set that a name stands for (`hubs`: name -> hub id).

    Raises ConfigError where the hub does not give it.
    """
    return read_rows(Path(source)) if Path(source).is_file() else _hub_rows(source, hubs, split)


def _hub_rows(name: str, hubs: Mapping[str, str], split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    from datasets import load_dataset

    hub = hubs.get(name.replace("_", "-"), name)
    try:
        rows = load_dataset(hub, split=split)
    except Exception as error:  # the hub client raises a dozen unrelated types
        text = f"Data set {hub!r} could not be loaded from the hub ({type(error).__name__}: {error})."
        raise ConfigError(
            text.replace("\n", " "), mend=f"Give a local parquet or JSONL file: {name}:PATH."
        ) from error
    for number, row in enumerate(rows):
        yield f"{hub}: row {number}", dict(row)


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    value = _parse(path.name, text)
    for number, row in enumerate(value if isinstance(value, list) else [value]):
        where = f"{path.name}: row {number}"
        yield where, _object(where, row)


def _parse(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise TaskError(f"{where}: not JSON ({error}).", mend="Each row is one JSON object.") from error


def _object(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TaskError(
            f"{where}: a row is a JSON object, not {type(value).__name__}.", mend="Mend or drop it."
        )
    return value


def need(row: Row, field: str, where: str, kind: type | tuple[type, ...] = str) -> Any:
    """The value of a field that must be there; raises TaskError naming row, field and mend."""
    if row.get(field) is None:
        raise TaskError(f"{where}: no field {field!r}.", mend="Add it to the row.")
    value = row[field]
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(k.__name__ for k in kinds)
        raise TaskError(
            f"{where}: field {field!r} is {type(value).__name__}, not {wanted}.", mend="Mend the row."
        )
    return value


def json_object(row: Row, field: str, where: str) -> dict[str, Any]:
    """The value of a field that is an object or the JSON of one."""
    value = need(row, field, where, (str, dict))
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise TaskError(
                f"{where}: field {field!r} is not JSON ({error}).", mend="Mend the row."
            ) from error
    if not isinstance(value, dict):
        raise TaskError(f"{where}: field {field!r} is no JSON object.", mend="Mend the row.")
    return value


def literal_list(value: Any) -> Any:
    """A list written as a Python literal, as a list; anything else as it is (the reader of the row judges it)."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return list(pyast.literal(value))
        except (ValueError, SyntaxError):
            return value
    return value


def id_list(row: Row, field: str, where: str) -> tuple[str, ...]:
    """Test ids given as a list or as a JSON string of a list; duplicates dropped, order kept."""
    value = need(row, field, where, (str, list, tuple))
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise TaskError(
                f"{where}: field {field!r} is neither a list nor the JSON of one ({error}).",
                mend='Write it as ["id", …].',
            ) from error
    if not isinstance(value, list | tuple) or not all(isinstance(i, str) for i in value):
        raise TaskError(f"{where}: field {field!r} is no list of strings.", mend='Write it as ["id", …].')
    return tuple(dict.fromkeys(value))


def existing(source: str, name: str) -> Path:
    """The path of a source; raises ConfigError where it is not there."""
    path = Path(source).expanduser()
    if not path.exists():
        raise ConfigError(
            f"Data set {name!r} needs a local path, and {source!r} is none.", mend=f"Write {name}:PATH."
        )
    return path
