"""A scripted sandbox for tests: commands are matched to results, files live in a dict, nothing is ever run.

    backend(results={"pytest*": ExecResult(exit_code=0)})                     # by shell-style pattern, first match
    backend(results=lambda op, files: ExecResult(exit_code=int("bug" in files["a.py"].decode())))
    backend(results={"make*": SandboxDied("gone")})                           # an exception is raised

An argv is matched as its words joined by blanks. Without a match: a small shell that knows `true`, `false`,
`echo WORDS` and `cat PATH`, and says "not scripted" with exit code 127 to anything else.
`opened` lists every sandbox ever opened; each keeps `files` and the list of `ops` it was given.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Self

from ..errors import SandboxDied
from ..protocols import Exec, ExecResult, Op, OpResult, Read, ReadResult, SandboxSpec, Write

Answer = ExecResult | BaseException
Results = Mapping[str, Answer] | Callable[[Exec, Mapping[str, bytes]], Answer]


def backend(*, results: Results | None = None, digests: Mapping[str, str] | None = None) -> FakeBackend:
    """results: see above. digests: image name -> content id; missing names give "fake:<name>"."""
    return FakeBackend(results or {}, digests or {})


class FakeBackend:
    name = "fake"

    def __init__(self, results: Results, digests: Mapping[str, str]) -> None:
        self.results, self.digests = results, digests
        self.opened: list[FakeSandbox] = []
        self.closed = False

    def open(self, spec: SandboxSpec) -> FakeSandbox:
        sandbox = FakeSandbox(spec, self.results)
        self.opened.append(sandbox)
        return sandbox

    def image_digest(self, image: str | None) -> str:
        return "" if image is None else self.digests.get(image, f"fake:{image}")

    def close(self) -> None:
        self.closed = True


class FakeSandbox:
    isolation = "fake"
    scratch = "/scratch"

    def __init__(self, spec: SandboxSpec, results: Results) -> None:
        self.spec, self.workdir, self._results = spec, spec.workdir, results
        self.files: dict[str, bytes] = {}
        self.ops: list[Op] = []
        self.closed = False
        self._put({path: text.encode() for path, text in spec.files.items()})

    def script(self, ops: Sequence[Op]) -> tuple[OpResult, ...]:
        if self.closed:
            raise SandboxDied("fake sandbox: used after it was closed.", mend="Open a fresh one.")
        results: list[OpResult] = []
        for op in ops:
            self.ops.append(op)
            if isinstance(op, Write):
                self._put(op.files)
                results.append(None)
            elif isinstance(op, Read):
                data = self.files.get(self._path(op.path))
                short = (data or b"")[: op.limit]
                results.append(
                    ReadResult(found=data is not None, data=short, truncated=short != (data or b""))
                )
            else:
                result = self._exec(op)
                results.append(result)
                if op.check and result.exit_code != 0:
                    break
        return tuple(results)

    def exec(self, command: str | tuple[str, ...], *, timeout_s: float = 60.0) -> ExecResult:
        result = self.script([Exec(command=command, timeout_s=timeout_s)])[0]
        assert isinstance(result, ExecResult)
        return result

    def write(self, files: Mapping[str, bytes]) -> None:
        self.script([Write(files=files)])

    def read(self, path: str, *, limit: int = 10_000_000) -> bytes:
        result = self.script([Read(path=path, limit=limit)])[0]
        assert isinstance(result, ReadResult)
        if not result.found:
            raise FileNotFoundError(path)
        return result.data

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _path(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.workdir, path))

    def _put(self, files: Mapping[str, bytes]) -> None:
        self.files.update({self._path(path): data for path, data in files.items()})

    def _exec(self, op: Exec) -> ExecResult:
        line = op.command if isinstance(op.command, str) else " ".join(op.command)
        if callable(self._results):
            return _given(
                self._results(op, {posixpath.relpath(p, self.workdir): d for p, d in self.files.items()})
            )
        for pattern, answer in self._results.items():
            if fnmatchcase(line, pattern):
                return _given(answer)
        return self._shell(op)

    def _shell(self, op: Exec) -> ExecResult:
        words = shlex.split(op.command) if isinstance(op.command, str) else list(op.command)
        if words in (["true"], ["false"]):
            return ExecResult(exit_code=int(words == ["false"]))
        if words[:1] == ["echo"]:
            return ExecResult(exit_code=0, output=" ".join(words[1:]).encode() + b"\n")
        if words[:1] == ["cat"] and len(words) == 2 and self._path(words[1]) in self.files:
            return ExecResult(exit_code=0, output=self.files[self._path(words[1])])
        return ExecResult(exit_code=127, output=f"not scripted: {' '.join(words)}\n".encode())


def _given(answer: Answer) -> ExecResult:
    if isinstance(answer, BaseException):
        raise answer
    return answer
