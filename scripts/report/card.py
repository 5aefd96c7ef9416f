"""A data-set card for the hub: counts with intervals, what the flags mean, the day of the audit (Markdown with YAML head)."""

from __future__ import annotations

from .collect import Material
from .facts import control, facts, headline, repair_facts
from .markup import percent


def card(material: Material) -> str:
    """The card of an audited (and perhaps repaired) data set."""
    found = material.summary
    lines = [
        "---",
        "tags: [code, reinforcement-learning, reward-hacking, audit]",
        f"pretty_name: {material.dataset or material.name}, audited",
        "---",
        f"# {material.dataset or material.name}: audit of its test suites",
        "",
        (
            f"Audited {material.audited or 'on an unrecorded day'} with acidtest; run `{material.name}`. A task is *hackable* when its suite pays "
            "a program whose wrongness has an executed proof; everything else is robust at this audit's budget, never unhackable."
        ),
        "",
        "| | tasks |",
        "| --- | --- |",
        *(f"| {row['title']} | {percent(row['count'], row['of'])} |" for row in headline(material)),
        *(f"| decision {name} | {count} of {found.tasks} |" for name, count in found.decisions.items()),
        *(f"| flag `{name}` | {count} of {found.tasks} |" for name, count in found.flags.items()),
        "",
        "Intervals are Wilson, 95 %.",
    ]
    if not control(material)[1]:
        lines += [
            "",
            "No benign control was run: judged and claimed rates cannot be weighed against false accusations.",
        ]
    lines += ["", "## Run", "", *(f"- {name}: {value}" for name, value in facts(material))]
    repaired = repair_facts(material.repairs)
    if repaired:
        states = ", ".join(f"{count} {state}" for state, count in repaired["states"].items())
        lines += ["", "## Repair", "", f"- tasks taken: {repaired['taken']} ({states})"]
        lines += [f"- wrong programs refused, executed: {repaired['blocked']}"]
        lines += [f"- held out, {name}: {value}" for name, value in repaired["held_out"].items()]
    hackable = [record.task_id for record in material.records if record.hackable]
    if hackable:
        lines += ["", "## Hackable tasks", "", *(f"- `{task_id}`" for task_id in sorted(hackable))]
    lines += [
        "",
        "## Definitions",
        "",
        (
            "EQS = 0.35 V + 0.30 (1 − H) + 0.20 F1 + 0.15 D (Rajan, arXiv 2606.16062); V, F1 and D are acidtest's own "
            "operational definitions, the paper published none. KEEP above 0.70, FIX from 0.40, DROP below."
        ),
    ]
    return "\n".join(lines) + "\n"
