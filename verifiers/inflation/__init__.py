"""Do weak test suites inflate scores? Meta-analysis of a submission x task matrix (SCIENCE, Meta-analysis).

`analyse` is the whole of it; `data` reads files, `text` and `plots` show the result.
"""
