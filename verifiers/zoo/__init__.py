"""The exploit zoo: every way THREATS lists to cheat a test-suite reward, as runnable payloads.

`kinds()` lists them; each makes `Payload`s for one task from its `Ground` (`ground.survey`). `matrix` runs them
against graders. Payloads are harmless by construction: they only forge, hide or repair test outcomes inside the
sandbox they run in, never wait for a network, leave no process behind, and those that write outside the tree
(site-packages, PATH) are marked `contained` and only made for sandboxes with an image.
"""
