"""Part of the agent: writing and reading files. Every folder is opened by descriptor; links are never followed."""

import binascii
import errno
import os
import stat

from .frames import pack
from .tree import STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parts_of(path: "str") -> "list[str]":
    full = os.path.normpath(os.path.join(STATE["workdir"], path))
    return [part for part in full.split("/") if part]


def open_up(name: "str", folder: "int") -> "None":
    """Give its owner (us) back the rights on a folder that a command may have taken away."""
    mode = os.lstat(name, dir_fd=folder).st_mode
    if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
        os.chmod(name, stat.S_IMODE(mode) | 0o700, dir_fd=folder)


def remove(name: "str", folder: "int") -> "None":
    if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    open_up(name, folder)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        for child in os.listdir(inner):
            remove(child, inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def enter(folder: "int", name: "str", top: "bool") -> "int":
    """Open (make) one folder below another. A link there is replaced, but never one directly below '/'."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    for _ in range(3):
        try:
            if not top:
                open_up(name, folder)
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            os.mkdir(name, 0o755, dir_fd=folder)
        except OSError as error:
            if top or error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            os.unlink(name, dir_fd=folder)
    raise OSError(errno.EBUSY, "cannot make the folder", name)


def write_file(path: "str", data: "bytes") -> "None":
    parts = parts_of(path)
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for depth, name in enumerate(parts[:-1]):
            inner = enter(folder, name, depth == 0)
            os.close(folder)
            folder = inner
        mode, name = 0o644, parts[-1]
        try:
            old = os.lstat(name, dir_fd=folder)
            if stat.S_ISREG(old.st_mode):
                mode = stat.S_IMODE(old.st_mode) | 0o600
            remove(name, folder)
        except FileNotFoundError:
            pass
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        with open(fd, "wb") as file:
            file.write(data)
            os.fchmod(fd, mode & 0o777)
    finally:
        os.close(folder)


def do_write(op: "dict[str, Any]") -> "dict[str, Any]":
    for path, data in op["files"]:
        try:
            write_file(path, binascii.a2b_base64(data))
        except OSError as error:
            return {"error": [error.errno, path, str(error)]}
    return {}


def do_read(op: "dict[str, Any]") -> "dict[str, Any]":
    path, limit = "/" + "/".join(parts_of(op["path"])), op["limit"]
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return {"found": False}
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return {"found": False}
    with open(fd, "rb") as file:
        try:
            data = file.read(limit + 1)
        except OSError as error:
            return {"error": [error.errno, path, str(error)]}
    return {"found": True, "data": pack(data[:limit]), "truncated": len(data) > limit}
