"""What the framework files share: the helper folder on the path, reading the channel, shell words of a command, and the
preamble of runners that are hooked at Python's start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from ..inside import helper_files
from ..protocols import ExecResult, Invocation, Report
from ..report import observe

LIB = "{scratch}/lib"


def helpers(*names: str) -> dict[str, bytes]:
    """Helper files for the scratch folder, path -> content; the two that every framework needs are among them."""
    always = ("acid_import", "acid_integrity")
    return helper_files(*dict.fromkeys((*names, *always)))


def on_path(command: str) -> str:
    """The command with the helper folder first on PYTHONPATH, also where the command sets that variable itself."""
    command = re.sub(r"(^|[\s;&])PYTHONPATH=(?=\S)", rf"\1PYTHONPATH={LIB}:", command)
    return f'export PYTHONPATH="{LIB}${{PYTHONPATH:+:$PYTHONPATH}}"; {command}'


def report_of(result: ExecResult) -> Report:
    seen = observe(result.messages)
    return Report(
        statuses=seen.statuses,
        durations=seen.durations,
        finished=seen.finished,
        aliases=seen.aliases,
        keys=seen.keys,
        alarms=seen.alarms,
        replaced=seen.replaced,
    )


def seeded(seed: int | None, env: Mapping[str, str] | None = None) -> dict[str, str]:
    out = dict(env or {})
    if seed is not None:
        out["ACIDTEST_SHUFFLE"] = str(seed)
    return out


def words(command: str) -> list[str]:
    """Shell words; [] where the text is no plain command line."""
    try:
        return shlex.split(command, comments=False)
    except ValueError:
        return []


def python_paths(command: str) -> tuple[str, ...]:
    """Words of a command that look like test files, folders or node ids, as paths; "." when there are none."""
    found: list[str] = []
    for word in words(command)[1:]:
        path = word.split("::", 1)[0].rstrip("/")
        if word.startswith("-") or "=" in word or not path:
            continue
        if path.endswith(".py") or "/" in path or path in {"tests", "test", "testing"}:
            found.append(path)
    return tuple(dict.fromkeys(found)) or (".",)


def quoted(items: Iterable[str]) -> str:
    return " ".join(shlex.quote(item) for item in items)


class Hooked:
    """Base of frameworks whose runner knows no plugins: a start-up file in the helper folder attaches `hook` to it."""

    hook = ""

    def invocation(self, command: str, *, seed: int | None = None) -> Invocation:
        files = helpers("acid_channel", "acid_import", self.hook, "sitecustomize")
        env = seeded(seed, {"ACIDTEST_HOOK": self.hook})
        return Invocation(command=on_path(command), env=env, files=files)

    def parse(self, result: ExecResult) -> Report:
        return report_of(result)
