"""Small pieces of HTML: highlighted diffs and code, shares with intervals, SVG made fit for one page."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ...verifiers.eqs import Share
from ...verifiers.stats import wilson

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pygments.formatters import HtmlFormatter

INK = "#1f2933"
"""Colour that figures use for text and axes; becomes the page's own, so that they read in light and dark."""
_XML = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.S)
_ID = re.compile(r'\bid="([^"]+)"')
_USE = re.compile(r"url\(#([^)]+)\)")
_HREF = re.compile(r'xlink:href="#([^"]+)"')


@cache
def _formatter() -> HtmlFormatter[str]:
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(nowrap=True, classprefix="p-")


def highlighted(text: str, language: str, lines: int) -> Markup:
    """Code or diff with CSS classes, cut after `lines` lines (and says how many are left)."""
    from pygments import highlight
    from pygments.lexers import get_lexer_by_name

    all_lines = text.rstrip("\n").split("\n")
    shown = "\n".join(line[:400] for line in all_lines[:lines])
    html = highlight(shown, get_lexer_by_name(language), _formatter()).rstrip("\n")
    left = len(all_lines) - lines
    more = f'<span class="more">… {left} more lines</span>' if left > 0 else ""
    return Markup(f'<pre class="code {language}">{html}\n{more}</pre>' if more else f'<pre class="code {language}">{html}</pre>')  # fmt: skip


def log_tail(text: str, chars: int) -> Markup:
    """The end of a log, escaped."""
    text = text.strip()
    cut = f"… {len(text) - chars} characters before this\n" if len(text) > chars else ""
    return Markup(f'<pre class="log">{escape(cut + text[-chars:])}</pre>')


def share(value: Share) -> str:
    """``3 of 12 (25.0 %, 95 % 8.9 to 53.2)``: never a rate without its pair; Wilson."""
    return percent(value.count, value.of)


def percent(count: int, of: int) -> str:
    interval = wilson(count, of)
    if interval is None:
        return f"{count} of {of}"
    return (
        f"{count} of {of} ({100 * count / of:.1f} %, 95 % {100 * interval[0]:.1f} to {100 * interval[1]:.1f})"
    )


def inline_svg(figure: Figure, name: str, title: str) -> Markup:
    """The figure as SVG for the page: no XML head, own ids, the page's font and text colour, an accessible title."""
    from ...verifiers.inflation.plots import svg

    return adopt_svg(svg(figure), name, title)


def adopt_svg(text: str, name: str, title: str) -> Markup:
    """Make a matplotlib SVG fit for inlining beside others."""
    text = _XML.sub("", text).strip()
    text = _ID.sub(lambda m: f'id="{name}-{m[1]}"', text)
    text = _USE.sub(lambda m: f"url(#{name}-{m[1]})", text)
    text = _HREF.sub(lambda m: f'xlink:href="#{name}-{m[1]}"', text)
    text = re.sub(r"font: ([^;\"]*?)(\d[\d.]*px) [^;\"]*", r"font: \1\2 inherit; font-family: inherit", text)
    text = text.replace(INK, "currentColor").replace("fill: #ffffff", "fill: none")
    text = re.sub(r'<svg ([^>]*?)width="[\d.]+pt" height="[\d.]+pt"', r"<svg \1", text, count=1)
    text = re.sub(r"<svg ", f'<svg role="img" aria-label="{escape(title)}" ', text, count=1)
    return Markup(re.sub(r"\n\s*", "\n", text))
