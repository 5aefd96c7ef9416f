"""Gold and test patches of real rows are read as git reads them."""

from __future__ import annotations

import pytest

from acidtest.envs.errors import PatchError
from acidtest.envs.patch import Patch
from acidtest.verifiers.zoo.apply import apply_exact, paths_of

OLD = "a\nb\nc\nd\ne\nf\ng\n"
NEW = "a\nb\nC\nd\ne\nf\ng\nh\n"


def test_new_text_comes_back() -> None:
    patch = Patch.writing({"x.py": NEW, "new.py": "1\n2\n"}, {"x.py": OLD}).text
    assert paths_of(patch) == ["new.py", "x.py"]
    assert apply_exact({"x.py": OLD}, patch, only="x.py") == NEW
    assert apply_exact({"x.py": OLD}, patch, only="new.py") == "1\n2\n"


def test_a_moved_hunk_is_found_and_a_lost_one_refused() -> None:
    patch = Patch.writing({"x.py": NEW}, {"x.py": OLD}).text
    assert apply_exact({"x.py": "0\n0\n" + OLD}, patch, only="x.py") == "0\n0\n" + NEW
    with pytest.raises(PatchError, match=r"x\.py: the hunk at line 1 stands nowhere"):
        apply_exact({"x.py": "z\n"}, patch, only="x.py")
