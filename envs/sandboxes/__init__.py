"""Sandboxes: one file each; the folder listing is the registry."""
