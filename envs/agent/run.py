"""Part of the agent: one command with its deadline, bounded output and message channel."""

import binascii
import fcntl
import os
import select
import time

from .frames import CHUNK, fill, pack
from .ready import READY, forget_ready, hand_over
from .tree import STATE, kill_tree, reap, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any
else:
    import _socket as socket  # what `socket` wraps

PIPE_SIZE = 1 << 20
CGROUP = "/sys/fs/cgroup/"
NEAR = 4 << 20  # a huge page and a batch of others may fail to fit below the limit


class Tail:
    """Keeps the first half and the last half of `limit` bytes of a stream of any length."""

    def __init__(self, limit: "int") -> "None":
        self.half = max(1, limit // 2)
        self.head = bytearray()
        self.tail = bytearray()
        self.seen = 0

    def add(self, data: "bytes") -> "None":
        self.seen += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if len(data) >= self.half:
            self.tail[:] = data[-self.half :]
        elif data:
            self.tail += data
            if len(self.tail) > 2 * self.half + CHUNK:
                del self.tail[: -self.half]

    def value(self) -> "tuple[bytes, bool]":
        tail = bytes(self.tail[-self.half :])
        cut = self.seen - len(self.head) - len(tail)
        if cut <= 0:
            return bytes(self.head) + tail, False
        return bytes(self.head) + b"\n[... %d bytes cut ...]\n" % cut + tail, True


class Questions:
    """The agent's end of an Exec's channel: keeps messages, answers those that start with '?', knows when to stop.

    Nothing is kept or answered after the message that `refuses`: what is kept does not depend on who was faster.
    """

    def __init__(self, sock: "socket.socket", rules: "dict[str, Any]") -> "None":
        self.sock, self.rules = sock, rules
        self.kept: list[bytes] = []
        self.bytes = 0
        self.stops = tuple(text.encode() for text in rules["stop"])
        self.stopped = False

    def drain(self, budget: "int" = 512) -> "bool":
        """Take what is there. False when the other side is gone, or the rule to stop has fired."""
        for _ in range(budget):
            if self.stopped:
                return False
            try:
                message = self.sock.recv(1 << 20)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not message:
                return False
            if len(self.kept) < self.rules["max_messages"] and self.bytes < self.rules["max_bytes"]:
                self.kept.append(message)
                self.bytes += len(message)
                self.stopped = refuses(message, self.stops)
            if message[:1] == b"?":
                question = message[1:].decode("utf-8", "replace")
                answer = self.rules["replies"].get(question, self.rules["default"])
                try:
                    self.sock.send(answer.encode())
                except OSError:
                    pass
        return True

    def value(self) -> "dict[str, Any]":
        return {"sizes": [len(m) for m in self.kept], "data": pack(b"".join(self.kept))}


def refuses(message: "bytes", stops: "tuple[bytes, ...]") -> "bool":
    """Whether a message is one of these beginnings and a number: as our helpers write it, no other JSON of it.

    `json` is not asked: what it raises it may import, and a command could have changed what is found then.
    """
    start = next((start for start in stops if message.startswith(start)), None)
    if start is None or message[-1:] != b"]":
        return False
    number = message[len(start) : -1].decode("ascii", "replace")
    if not number[:1].isdigit() or len(number) > 24:
        return False
    try:
        return repr(float(number)) == number or str(int(number)) == number
    except ValueError:
        return False


def memory_trouble() -> "tuple[int, bool]":
    """(processes of this sandbox that the kernel killed for memory, whether its own limit was ever reached).

    A kill without the limit being reached: somebody else ran short, the machine or a group that the sandbox is part of.
    """
    try:
        with open(CGROUP + "memory.events") as file:  # version 2
            found = dict(line.split() for line in file)
        return int(found.get("oom_kill", 0)), int(found.get("max", 1)) > 0
    except (OSError, ValueError):
        pass
    try:
        with open(CGROUP + "memory/memory.oom_control") as file:  # version 1
            found = dict(line.split() for line in file)
        with open(CGROUP + "memory/memory.max_usage_in_bytes") as file:
            most = int(file.read())
        with open(CGROUP + "memory/memory.limit_in_bytes") as file:
            return int(found.get("oom_kill", 0)), most > int(file.read()) - NEAR
    except (OSError, ValueError):
        return 0, True


def do_exec(op: "dict[str, Any]") -> "dict[str, Any]":
    start, (kills, _) = time.monotonic(), memory_trouble()
    out_r, out_w = os.pipe()
    try:
        fcntl.fcntl(out_w, 1031, PIPE_SIZE)  # F_SETPIPE_SZ
    except OSError:
        pass
    stdin = binascii.a2b_base64(op.get("stdin") or "")
    in_r, in_w = os.pipe() if stdin else (os.open("/dev/null", os.O_RDONLY), -1)
    ours = theirs = None
    if op.get("channel"):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
    questions = Questions(ours, op["channel"]) if ours else None
    output = Tail(op["output_bytes"])
    try:
        channel = theirs.fileno() if theirs else -1
        pid = hand_over(op, out_w, in_r, channel) or spawn(op, out_w, in_r, channel)
        os.close(out_w)
        os.close(in_r)
        if theirs:
            theirs.close()
        feed, in_w = in_w, -1
        ended = attend(pid, start + op["timeout"], out_r, feed, stdin, output, questions)
        if not op.get("check"):
            forget_ready()
        left = kill_tree(READY.get("pid", 0))
        while True:
            try:
                data = os.read(out_r, CHUNK)
            except BlockingIOError:
                break
            if not data:
                break
            output.add(data)
        while questions and len(questions.kept) < questions.rules["max_messages"]:
            before = len(questions.kept)
            questions.drain()
            if len(questions.kept) == before:
                break
    finally:
        os.close(out_r)
        if in_w >= 0:
            os.close(in_w)
        if ours:
            ours.close()
    stopped = bool(questions and questions.stopped)
    timed_out = ended is None and not stopped
    status = left.get(pid, 0) if ended is None else ended
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    text, cut = output.value()
    kills_now, at_limit = memory_trouble()
    return {
        "exit_code": None if timed_out or stopped else code,
        "output": pack(text),
        "truncated": cut,
        "timed_out": timed_out,
        "stopped": stopped,
        "out_of_memory": kills_now > kills,
        "starved": kills_now > kills and not at_limit,
        "seconds": time.monotonic() - start,
        "messages": questions.value() if questions else None,
    }


def attend(
    pid: "int",
    deadline: "float",
    out_r: "int",
    in_w: "int",
    stdin: "bytes",
    output: "Tail",
    questions: "Questions | None",
) -> "int | None":
    """Serve a running command until its main process ends (its wait status), or until it has to be ended (None)."""
    os.set_blocking(out_r, False)
    poll = select.poll()
    for fd in (STATE["in"], STATE["wake"], out_r):
        poll.register(fd, select.POLLIN)
    if in_w >= 0:
        os.set_blocking(in_w, False)
        poll.register(in_w, select.POLLOUT)
    if questions:
        poll.register(questions.sock.fileno(), select.POLLIN)
    view = memoryview(stdin)
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for fd, _event in poll.poll(min(left, 60.0) * 1000 + 1):
                if fd == out_r:
                    data = read_some(out_r)
                    if data is not None and not data:
                        poll.unregister(out_r)
                    output.add(data or b"")
                elif fd == STATE["in"]:
                    fill()
                elif fd == in_w:
                    try:
                        view = view[os.write(in_w, view[:65536]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        view = memoryview(b"")
                    if not view:
                        poll.unregister(in_w)
                        os.close(in_w)
                        in_w = -1
                elif fd == STATE["wake"]:
                    ended = reap()
                    if pid in ended:
                        return ended[pid]
                elif questions and not questions.drain():
                    poll.unregister(fd)
            if questions and questions.stopped:
                return None
    finally:
        if in_w >= 0:
            os.close(in_w)


def read_some(fd: "int") -> "bytes | None":
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
