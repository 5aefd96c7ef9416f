"""The report of a run: one self-contained page, a terminal summary, a data-set card, JUnit XML.

`collect` reads a run directory; `page`, `terminal`, `card` and `junit` show what it found. Nothing here runs a suite.
"""
