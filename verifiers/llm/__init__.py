"""The one LLM seam: `open_llm(spec, store=…)` gives something with `complete` and `complete_many`.

protocol   what is asked and what comes back        calls      every call, in SQLite (the run's ledger file)
open       `MODEL | batch:MODEL | files:DIR | replay:FILE`
direct     Anthropic Messages, with retries          batch      Anthropic Message Batches
files      plain request and response JSONL files    replay     recorded replies
prices     dollars per token, overridable            budget     the hard ceiling and the estimate before
prompts    readable, versioned prompt files          fence      delimiting of hostile text
"""
