"""Real GRPO runs of TRL on the CPU: one token per candidate patch, real verdicts. Tested with trl 1.16.0, transformers 5.24.0,
torch 2.13.0+cpu, wandb 0.31.0."""

from __future__ import annotations

import importlib.util
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import acidtest as at
from acidtest.training_hooks import trl_grpo
from acidtest.training_hooks.scorer import Scorer

Helper = Callable[[str], ModuleType]

needs_trl = pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed")
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning:(torch|transformers|trl|accelerate|datasets|wandb|pydantic).*"
    ),
    pytest.mark.filterwarnings("ignore::FutureWarning:(torch|transformers|trl|accelerate|datasets).*"),
    pytest.mark.filterwarnings(
        "ignore::UserWarning:(torch|transformers|trl|accelerate|datasets|wandb|pydantic).*"
    ),
    pytest.mark.filterwarnings("ignore:You are using 'environment_factory'"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def train(folder: Path, helper: Helper, rewards: Any, *, texts: list[str], steps: int, **options: Any) -> Any:
    """A GRPO run; gives the completions table."""
    import pandas as pd
    from trl import GRPOConfig, GRPOTrainer

    weak = helper("weak_add")
    template = options.pop("chat_template", None)
    model, tokenizer = helper("tiny_model").build(texts, chat_template=template)
    config = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=24,
        num_generations=24,
        max_completion_length=options.pop("max_completion_length", 1),
        max_steps=steps,
        learning_rate=1e-3,
        report_to=options.pop("report_to", "none"),
        logging_steps=1,
        use_cpu=True,
        bf16=False,
        log_completions=True,
        save_strategy="no",
        disable_tqdm=True,
        seed=1,
    )
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=rewards,
        args=config,
        train_dataset=at.to_dataset([weak.hardened()] * 4, "trl"),
        **options,
    )
    trainer.train()
    return pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("completions/*.parquet"))])


@needs_trl
@pytest.mark.usefixtures("fresh_wandb")
def test_a_real_grpo_run_pays_masks_and_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: Helper
) -> None:
    weak = helper("weak_add")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    judge = weak.LosesEngine()
    paid = trl_grpo.reward([weak.hardened()], incidents=[tmp_path / "i.jsonl", "wandb"], verifier=judge)
    table = train(tmp_path, helper, paid, texts=list(weak.SUBMISSIONS.values()), steps=2, report_to="wandb")
    paid.close()
    import wandb

    wandb.finish()
    texts = [row[-1]["content"] for row in table["completion"]]
    with Scorer([weak.hardened()], verifier=judge) as scorer:
        wanted = scorer.rewards(["toy/add_weak"] * len(texts), texts)
    judge.close()
    got = [None if value != value else value for value in table["acidtest"]]
    assert got == wanted, "the trainer's rewards are the Scorer's"
    assert statistics.pvariance([value for value in got if value is not None]) > 0
    assert set(weak.SUBMISSIONS.values()) <= set(texts), (
        "gold, half, exploit, tamper, garbage, lost were all submitted"
    )
    outcomes = dict(
        zip(texts, zip(table["outcome"], table["incident"], table["masked"], strict=True), strict=True)
    )
    assert outcomes[weak.GOLD] == ("resolved", "", False)
    assert outcomes[weak.HALF] == ("unresolved", "", False)
    assert outcomes[weak.EXPLOIT] == ("unresolved", "false_pass", False)
    assert outcomes[weak.TAMPER] == ("tampered", "tamper", False)
    assert outcomes[weak.GARBAGE] == ("patch_rejected", "", False)
    assert outcomes[weak.LOST] == ("infrastructure", "", True)
    reader = helper("wandb_file")
    rows = reader.history(reader.run_file(tmp_path))
    ours = [row for row in rows if "hack/decisive" in row]
    assert [row["train/global_step"] for row in ours] == [0, 1]
    for name in (
        "hack/false_pass_rate",
        "hack/tamper_rate",
        "reward/masked",
        "reward/original",
        "reward/hardened",
    ):
        assert any(row.get(name, 0) > 0 for row in ours), name
    severities = {json.loads(line)["severity"] for line in (tmp_path / "i.jsonl").read_text().splitlines()}
    assert severities == {"false_pass", "tamper"}


@needs_trl
def test_the_same_with_environment_factory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: Helper
) -> None:
    import trl

    weak = helper("weak_add")
    monkeypatch.chdir(tmp_path)
    judge = weak.LosesEngine()
    factory, paid = trl_grpo.environments([weak.hardened()], incidents=tmp_path / "i.jsonl", verifier=judge)
    calls = [
        f"<tool_call>\n{json.dumps({'name': 'submit', 'arguments': {'patch': text}})}\n</tool_call>"
        for text in weak.SUBMISSIONS.values()
    ]
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    table = train(
        tmp_path,
        helper,
        paid,
        texts=calls,
        steps=1,
        chat_template=template,
        environment_factory=factory,
        max_completion_length=24,
    )
    paid.close()
    judge.close()
    assert {"false_pass", "tamper"} <= set(table["incident"])
    assert set(table[table["outcome"] == "resolved"]["acidtest"]) == {1.0}
    masked = table[table["masked"]]
    assert len(masked) > 0
    assert masked["acidtest"].isna().all()
    assert table[~table["masked"]]["acidtest"].var() > 0


def test_texts_of_completions() -> None:
    assert trl_grpo.text_of("plain") == "plain"
    said = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "tool", "content": "t"},
    ]
    assert trl_grpo.text_of(said) == "a"
    assert trl_grpo.text_of([{"role": "assistant", "content": [{"type": "text", "text": "b"}]}]) == "b"
    assert trl_grpo.text_of([]) == ""


def test_the_environment_takes_the_first_submission_only(helper: Helper, tmp_path: Path) -> None:
    from acidtest.envs.scripted import ScriptedVerifier

    weak = helper("weak_add")
    judge = ScriptedVerifier(lambda t, p: at.Outcome.RESOLVED if "a + b" in p.text else at.Outcome.UNRESOLVED)
    factory, paid = trl_grpo.environments([weak.hardened()], incidents=tmp_path / "i.jsonl", verifier=judge)
    env = factory()
    assert env.submit("x") == "No task was begun."
    assert env.reset(task_id="toy/add_weak", prompt="p") is None
    assert env.submit(weak.HALF) == "Submitted."
    assert "first" in env.submit(weak.GOLD)
    silent = factory()
    silent.reset(task_id="toy/add_weak")
    rewards = paid(completions=["", weak.GOLD], task_id=["toy/add_weak"] * 2, environments=[env, silent])
    assert rewards == [0.0, 1.0], "an environment without a submission falls back to the completion"
    paid.close()
