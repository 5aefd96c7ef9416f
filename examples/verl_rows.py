"""Rows and flags for verl: a parquet file to train on, and the options that name our reward function."""

from pathlib import Path

import acidtest as at

FLAGS = """data.train_files={file}
reward.custom_reward_function.path=pkg://acidtest.training_hooks.verl_reward
reward.custom_reward_function.name=compute_score
+reward.custom_reward_function.reward_kwargs.source=toy"""


def main(file: Path = Path("acidtest_verl.parquet")) -> None:
    at.to_dataset(at.load_tasks("toy"), "verl").to_parquet(str(file))
    print(FLAGS.format(file=file))


if __name__ == "__main__":
    main()
