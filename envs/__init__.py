"""Floor 1: tasks, suites, sandboxes, runs and verdicts. Knows no audit and no repair."""
