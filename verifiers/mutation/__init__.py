"""How wrong programs are made out of gold: text edits at AST offsets, and views of function tasks."""
