"""Which layers of the defence are on (THREATS.md, "The defence, in layers"). Each can be switched off on its own."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .errors import ConfigError
from .record import Record


@dataclass(frozen=True, kw_only=True)
class Defence(Record):
    """Layers as booleans; the fresh sandbox is not one of them: there is no other way to run a suite here.

    diff_policy: refuse `.git`, links, modes, `..` (diff_policy.py). protect: protected paths are not applied
    (protect.py). trusted_tests: the suite's test files are written after the submission, links replaced.
    accounting: every id must be executed and passed, from the report channel; off: exit code and printed log.
    beacons: a claimed pass needs the tails of its test bodies (beacons.py). twin: share of claimed passes that
    the sabotaged twin examines, 0 … 1 (twin.py). probe: the comparison probe (probe.py).
    integrity: what asserts rest on was not replaced, nor a trusted file (integrity.py; rides on the beacons).
    twin_sample: how many PASS_TO_PASS ids are told to fail beside all FAIL_TO_PASS ids.
    repeat: an added test that fails must fail again in another sandbox before the verdict is a false pass. No layer
    against cheating: it guards correct code against flaky added tests.
    fail_fast: the added tests end at the first that fails; those after it are neither passed nor failed. No layer
    either: it saves time where only the whole verdict is paid for. The twin and the probe always run to the end.
    """

    name: str = "strict"
    diff_policy: bool = True
    protect: bool = True
    trusted_tests: bool = True
    accounting: bool = True
    beacons: bool = True
    twin: float = 1.0
    probe: bool = True
    integrity: bool = True
    twin_sample: int = 12
    repeat: bool = True
    fail_fast: bool = False

    @property
    def label(self) -> str:
        """The name for a named defence, else the layers that are on."""
        return self.name or "+".join(self.layers)

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(
            f.name
            for f in fields(self)
            if f.name not in {"name", "twin_sample", "repeat", "fail_fast"} and getattr(self, f.name)
        )


STRICT = Defence()
FAST = Defence(name="fast", twin=0.1, probe=False, repeat=False)
"""Gives up: nine claimed passes in ten are not examined by the twin, none by the probe, and a failed added test is
believed at once."""
LAYERS = ("diff_policy", "protect", "trusted_tests", "accounting", "beacons", "integrity", "twin", "probe")


def defence_of(value: str | Defence) -> Defence:
    """A defence by name ("strict", "fast"), or as it is. Raises ConfigError."""
    if isinstance(value, Defence):
        return value
    known = {"strict": STRICT, "fast": FAST}
    if value not in known:
        raise ConfigError(f"No defence named {value!r}.", mend="There are: strict, fast.")
    return known[value]
