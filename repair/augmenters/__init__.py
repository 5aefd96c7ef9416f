"""Augmenters: one file each, defining ``propose(task, findings, rejected) -> Iterable[Proposal]``."""
