"""Floor 5: the command line, the demo, benchmarks, the report writer, image building."""
