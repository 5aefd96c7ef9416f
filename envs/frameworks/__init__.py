"""Test frameworks: one file each; the folder listing is the registry."""
