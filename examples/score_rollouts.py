"""Score rollouts from any trainer: order kept, at most four at once, None where there is no valid reward."""

import asyncio

import acidtest as at

ROLLOUTS = [("toy/add_sound", "def add(a, b):\n    return a + b\n"), ("toy/add_sound", "I don't know.")]


def main(**options: object) -> None:
    with at.Scorer(at.load_tasks("toy"), max_concurrent=4, deadline_s=120, **options) as scorer:
        print([score.reward for score in scorer.score(ROLLOUTS)])
        for score in asyncio.run(scorer.ascore(ROLLOUTS)):
            print(score.task_id, score.outcome, score.reward, score.error)


if __name__ == "__main__":
    main()
