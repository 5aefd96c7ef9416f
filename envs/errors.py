"""Every error that acidtest raises on purpose.

    AcidtestError
    ├── ConfigError(ValueError)          an option, a name or a file of the user's is off
    │   ├── UnknownName(LookupError)     no such data set, sandbox, framework, attacker …
    │   └── RunConflict                  a run directory holds something else, or another process holds it
    ├── TaskError(ValueError)            a row or a task that cannot be used as it stands
    │   └── CalibrationError             the task's own gold patch does not do what the task says
    ├── PatchError(ValueError)           text that is no usable unified diff (a verdict turns this into PATCH_REJECTED)
    ├── SandboxError(OSError)            infrastructure: never a reward, retried where `retryable`
    │   ├── EngineUnavailable            no engine answers
    │   ├── ImageMissing(LookupError)    the task's image is not on this machine
    │   ├── DiskFull                     no space left where the sandbox writes
    │   ├── SandboxDied                  killed from outside, or the engine lost it
    │   └── EngineTimeout(TimeoutError)  the engine did not answer within its deadline
    ├── LockError                        a hardened suite does not belong to this task, image or file
    └── LLMError
        ├── BudgetExceeded               the next call would pass --max-usd
        └── AnswersPending               the batch or the files have no answers yet

A bad patch is data (a Verdict), bad infrastructure is an exception, a bad task is a flag.
Each error is one line: what is wrong with which thing, and in `mend` what to do about it.
"""

from __future__ import annotations


class AcidtestError(Exception):
    """Base of all. `mend` says in one sentence what to do; `exit_code` is what the command line ends with."""

    exit_code = 1

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(f"{message} {mend}".rstrip() if mend else message)
        self.message = message
        self.mend = mend


class ConfigError(AcidtestError, ValueError):
    """An option, a name or a file given by the user is off."""

    exit_code = 2


class UnknownName(ConfigError, LookupError):
    """A name that no file of the registry folder answers to; the message lists what exists."""


class RunConflict(ConfigError):
    """The run directory belongs to another configuration, or another process is writing it."""


class TaskError(AcidtestError, ValueError):
    """A row or task that cannot be used as it stands; names the row and the field."""

    exit_code = 3


class CalibrationError(TaskError):
    """The task's own gold patch, no-op or suite does not behave as the task says."""


class PatchError(AcidtestError, ValueError):
    """Text that is not a usable unified diff."""


class SandboxError(AcidtestError, OSError):
    """Infrastructure failed. Never a reward. `retryable` says whether doing it again can help."""

    exit_code = 4
    retryable = True


class EngineUnavailable(SandboxError):
    """No engine answers at the configured socket."""


class ImageMissing(SandboxError, LookupError):
    """The task's image is not on this machine and may not be pulled."""

    retryable = False


class DiskFull(SandboxError):
    """No space is left where the sandbox has to write."""

    retryable = False


class SandboxDied(SandboxError):
    """The sandbox was killed from outside or the engine lost it."""


class EngineTimeout(SandboxError, TimeoutError):
    """The engine did not answer within its own deadline (not the suite's)."""


class LockError(AcidtestError):
    """A hardened suite does not belong to the task, image or files it is asked for; names both digests."""

    exit_code = 5


class LLMError(AcidtestError):
    """A model could not be asked, or its answer could not be used."""

    exit_code = 6


class BudgetExceeded(LLMError):
    """The next call would pass the hard ceiling; the run stops cleanly and resumes with more."""

    exit_code = 7


class AnswersPending(LLMError):
    """Requests were written; answers are not there yet. Run the same command again when they are."""

    exit_code = 8
