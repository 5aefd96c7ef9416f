"""Words for an `Inflation`: what was compared, the primary result, what it does and does not show."""

from __future__ import annotations

from .analysis import Inflation
from .moderators import Moderator
from .permutation import Permutation
from .pooling import Pooled

CONDITIONAL = "conditional on these tasks"


def summary(found: Inflation) -> str:
    """Markdown, paragraphs and lists; plain enough for a terminal."""
    parts = [
        "## Do weak suites inflate scores?",
        compared(found),
        primary(found),
        warning(found),
        pooled(found),
        sensitivity(found),
        moderators(found.moderators),
        limits(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def points(value: float) -> str:
    """Risk units as signed percentage points."""
    return f"{100 * value:+.2f}"


def interval(low: float, high: float) -> str:
    return f"{points(low)} to {points(high)}"


def p_value(p: float, floor: float = 0.0) -> str:
    """ "p = 0.032"; below the resolution of the method "p < …"."""
    if floor and p <= floor * 1.0001:
        return f"p ≤ {floor:.1g}"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.1e}"


def permutation_p(test: Permutation, *, two_sided: bool = False) -> str:
    value = test.p_two_sided if two_sided else test.p_greater
    return p_value(value, 1 / (test.permutations + 1))


def compared(found: Inflation) -> str:
    text = (
        f"Compared: {found.flagged} flagged with {found.audited - found.flagged} unflagged tasks, all of them "
        f"audited, over {found.submissions} submissions; stratified by {_names(found.strata)}."
    )
    empty = sum(row.flagged + row.unflagged for row in found.table if row.weight == 0)
    if empty:
        text += f" {empty} tasks lie in strata with only one kind and carry no information."
    if found.outside:
        text += f" {found.outside} flagged tasks are not among the audited ones and were left out."
    return text


def verdict(found: Inflation) -> str:
    """One sentence that claims no more than the primary test supports."""
    if found.primary.p_greater < 0.05:
        return "Flagged tasks are solved more often than comparable ones, beyond what shuffled flags give."
    if found.primary.p_two_sided < 0.05:
        return "Flagged tasks are solved *less* often than comparable ones, beyond what shuffled flags give."
    return (
        "The difference is within what shuffled flags give: these tasks do not show inflation, and do not "
        "exclude it inside the interval either."
    )


def primary(found: Inflation) -> str:
    test, other = found.primary, found.by_strata
    lines = [
        (
            f"**Primary result (the unit is the task).** Mean difference in Pass@1, flagged minus unflagged: "
            f"{points(found.estimate)} points (two-way bootstrap 95 % interval {interval(found.interval.low, found.interval.high)}). "
            f"Permutation of flags within {_names(test.within)}: one-sided {permutation_p(test)}, two-sided "
            f"{permutation_p(test, two_sided=True)} ({test.permutations} shuffles, seed {test.seed}; "
            f"{test.flagged_exchangeable} of {found.flagged} flags can move)."
        ),
        verdict(found),
    ]
    if other.within != test.within:
        lines.append(
            f"Shuffled within {_names(other.within)} only: one-sided {permutation_p(other)}. Beyond what "
            f"{_names(tuple(n for n in test.within if n not in other.within))} explains: "
            f"{points(test.beyond_null)} points."
        )
    return "\n".join(lines)


def warning(found: Inflation) -> str:
    return (
        "**Warning: submissions share their tasks.** Pooling over submissions as if they were independent "
        "measures how well the difference is known *for these very tasks*, not whether weak suites inflate "
        f"scores. On these data, with the flags shuffled within strata (no effect at all), the pooled test "
        f"rejects {100 * found.pooled_size:.0f} % of the time at α = 0.05. A small I² or Q/df near or below 1 "
        "is no comfort: units that share items agree because they share them."
    )


def pooled(found: Inflation) -> str:
    if not found.pooled:
        return "Pooled figures: fewer than two submissions have a variance, nothing to pool."
    lines = [f"**Pooled over submissions ({CONDITIONAL})**, points with 95 % intervals:", ""]
    lines += [f"- {pooled_line(row)}" for row in found.pooled]
    one = found.pooled[0]
    positive, negative, zero, p = found.sign
    lines += [
        (
            f"- heterogeneity: Q = {one.q:.1f} on {one.df} df (Q/df {one.q_over_df:.2f}, {p_value(one.q_p)}); "
            f"τ² interval {one.tau2_low:.5f} to {one.tau2_high:.5f}, I² interval {one.i2_low:.0f} to {one.i2_high:.0f} % (Q-profile)"
        ),
        (
            f"- sign test: {positive} of {positive + negative + zero} submissions positive, {negative} negative, "
            f"{zero} zero, one-sided {p_value(p)} (assumes independence as well)"
        ),
    ]
    if found.without_variance:
        lines.append(
            f"- {found.without_variance} submissions have no variance (solve none or all) and are not pooled"
        )
    return "\n".join(lines)


def pooled_line(row: Pooled) -> str:
    knapp = " + Hartung–Knapp" if row.hartung_knapp else ""
    return (
        f"{row.method}{knapp}: {points(row.estimate)} ({interval(row.low, row.high)}), τ² {row.tau2:.5f}, "
        f"I² {row.i2:.0f} %, prediction {interval(row.predict_low, row.predict_high)}"
    )


def sensitivity(found: Inflation) -> str:
    out = found.left_out
    lines = [
        (
            "**Sensitivity.** Leaving one task out moves the difference between "
            f"{points(out.low)} and {points(out.high)} points; the largest one-sided permutation p without one "
            f"flagged task is {out.flagged_p_greater_max:.3f} ({out.flagged_p_task})."
        )
    ]
    if out.influential:
        lines.append(
            "Most influential: "
            + ", ".join(f"{task} ({points(value)} without it)" for task, value in out.influential[:3])
            + "."
        )
    lines += [
        f"If {100 * row.false_accusation:g} % of flags are false accusations and {100 * row.missed:g} % of the "
        f"others were missed: {points(row.median)} points (95 % of {row.draws - row.undefined} draws "
        f"{interval(row.low, row.high)}), one-sided p < 0.05 in {100 * row.share_p_below:.0f} % of draws."
        for row in found.label_error
    ]
    return "\n".join(lines)


def moderators(rows: tuple[Moderator, ...]) -> str:
    if not rows:
        return ""
    lines = ["**Moderators** (difference by group; p: flags shuffled, between groups):", ""]
    for row in rows:
        groups = "; ".join(f"{g.label} (n = {g.submissions}) {points(g.estimate)}" for g in row.groups)
        lines.append(f"- {row.name}: {groups}; {p_value(row.p_between, 1 / (row.permutations + 1))}")
    lines.append(
        "- Pass@1 moves the difference mechanically: who solves almost nothing, or almost everything, has no room for one."
    )
    return "\n".join(lines)


def limits(found: Inflation) -> str:
    return (
        "**What this does not show.** The flags were not assigned at random: a task may be flagged *because* it "
        "is easy to pass, hackable or not, and strata remove only what they measure. An association is not the "
        "number of points that hacking added to anybody's score. An unaudited task is not a robust one; robust "
        f"means robust at the audit's budget. Seed {found.seed}."
    )


def _names(names: tuple[str, ...]) -> str:
    return " × ".join(names) if names else "no strata"
