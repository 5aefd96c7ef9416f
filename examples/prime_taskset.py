"""Tasks of Prime Intellect's `verifiers`; `vf-eval acidtest-verifiers --env.taskset.source toy` evaluates them."""

import verifiers.v1 as vf

from acidtest.training_hooks.prime_verifiers import AcidConfig, AcidTaskset, close


def main(**options: object) -> vf.Taskset:
    taskset = AcidTaskset(AcidConfig(id="acidtest-verifiers", source="toy", allow_hackable=True, **options))
    for task in taskset.take(3):
        print(task.data.name, task.data.suite_digest, task.data.prompt.splitlines()[0])
    close()
    return taskset


if __name__ == "__main__":
    main()
