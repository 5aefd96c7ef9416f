"""A model and tokenizer built on the spot: two layers, one token per candidate completion. No hub, no files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def build(completions: Sequence[str], *, seed: int = 0, chat_template: str | None = None) -> tuple[Any, Any]:
    """(model, tokenizer) whose vocabulary is pad, eos, unk and one token for each completion text.

    Every other text tokenizes to unk; what the model generates decodes to the very completion texts.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    tokenizer.add_tokens(list(completions))
    tokenizer.chat_template = chat_template or "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    model = Qwen2ForCausalLM(config)
    model.generation_config.suppress_tokens = [0, 2]
    return model, tokenizer
