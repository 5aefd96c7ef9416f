"""Floor 4: one file per trainer or logger; each imports its library lazily."""
