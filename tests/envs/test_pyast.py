"""Parsing survives CPython's shared recursion counter."""

from __future__ import annotations

import ast

import pytest

from acidtest.envs import pyast


def test_a_disturbed_parse_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def disturbed(source: str, filename: str) -> ast.Module:
        calls.append(filename)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=54, after=36)")
        return compile(source, filename, "exec", ast.PyCF_ONLY_AST)  # type: ignore[no-any-return]

    monkeypatch.setattr(pyast.ast, "parse", disturbed)
    assert isinstance(pyast.parse("x = 1"), ast.Module)
    assert len(calls) == 3


def test_what_is_wrong_with_the_source_is_raised_at_once() -> None:
    with pytest.raises(SyntaxError):
        pyast.parse("def")


def test_expressions_and_literals_too(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = ast.parse

    def disturbed(source: str, filename: str, mode: str) -> ast.AST:
        calls.append(mode)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=54, after=36)")
        return real(source, filename, mode)

    monkeypatch.setattr(pyast.ast, "parse", disturbed)
    assert pyast.literal("  [1, (2, 'x')]") == [1, (2, "x")]
    assert calls == ["eval"] * 3
    assert pyast.literal(pyast.expression("{1: None}").body) == {1: None}
    with pytest.raises(ValueError, match="malformed"):
        pyast.literal("print(1)")
    with pytest.raises(SyntaxError):
        pyast.literal("1 +")
