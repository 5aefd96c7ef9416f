"""GRPO with TRL on tasks of an audit, hack incidents to Weights & Biases."""

from typing import Any

from trl import GRPOConfig, GRPOTrainer

import acidtest as at


def main(
    model: Any = "Qwen/Qwen2.5-Coder-0.5B-Instruct", incidents: Any = "wandb", config: Any = None, **more: Any
) -> None:
    tasks = at.load_tasks("toy", task_ids=["toy/add_weak", "toy/add_sound"])
    paid = at.training_hooks.trl_grpo.reward(tasks, incidents=incidents, max_concurrent=8)
    args = config or GRPOConfig(output_dir="grpo", num_generations=8, log_completions=True, report_to="wandb")
    GRPOTrainer(model, paid, args=args, train_dataset=at.to_dataset(tasks, "trl"), **more).train()
    paid.close()


if __name__ == "__main__":
    main()
