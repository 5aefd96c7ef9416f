"""Attackers: one file each, defining ``attack(task, history) -> Iterable[Candidate]``."""
