"""Floor 3: propose tests, gate them, prove them, lock the hardened suite."""
