"""The picture of `learning.py`: true-solve and hack probability over steps, with intervals over seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .learning_policy import Curves

PANELS = (
    ("Original against hardened suites", ("original", "hardened")),
    ("Control: suites that pay nothing wrong", ("control", "control hardened")),
)
COLOURS = {"original": "#b2182b", "hardened": "#2166ac", "control": "#b2182b", "control hardened": "#2166ac"}


def draw(curves: dict[str, Curves], path: Path) -> None:
    """Two panels; solid: a truly correct patch, dashed: a wrong one that the original suite pays. Bands: mean ± 1.96 s.e."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (title, names) in zip(axes, PANELS, strict=True):
        for name in names:
            for what, style in (("solve", "-"), ("hack", "--")):
                values = getattr(curves[name], what)
                mean = values.mean(axis=0)
                error = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
                steps = np.arange(len(mean))
                label = f"{name}: {'truly solved' if what == 'solve' else 'paid though wrong'}"
                axis.plot(steps, mean, style, color=COLOURS[name], label=label)
                axis.fill_between(
                    steps, mean - error, mean + error, color=COLOURS[name], alpha=0.15, linewidth=0
                )
        axis.set(title=title, xlabel="training step", ylim=(0, 1))
        axis.legend(fontsize=8)
    axes[0].set_ylabel("probability under the policy")
    figure.suptitle("A small bandit-like policy over candidate patches (not a language model)", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
