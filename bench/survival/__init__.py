"""What is still known after a compaction: facts by rule, arms side by side, one artefact for each run.

    python -m bench.survival FOLDER|FILE … [--elsewhere FOLDER|FILE …] [--half development|held-out|both] [--budget 8000]
        [--calls 0,1,2,3,5] [--seed N] [--out FILE]

Files are Claude Code transcripts (``.jsonl`` or ``.jsonl.gz``) with at least one real compaction. The memory is given the
lines before the boundary and nothing else; facts and questions come from the lines around it by rules of this package, which
shares no code with what the memory extracts (a test forbids the import). It measures what can still be *known*, by the block
alone or with so many calls of ``search``; it says nothing about whether an agent then works better.

``record``     a transcript as events, by a parser of its own
``facts``      what a session established, by rule, and which of it the rest of the session then used
``plants``     made-up facts spliced in at run time: superseded, revoked, never true; ``grammar`` draws a second set of wordings
``arms``       the texts that are compared, each within the budget
``entries``    what belongs together in a text
``judge``      whether a text holds a fact, and holds it bound; tokens; the bootstrap
``standing``   whether a text holds what the user asked for and never took back
``falsehoods`` what a text claims that the session never had
``citations``  whether notes cite what they tell, and recall gives the same bytes
``agent``      a rule that asks ``search`` a question and reads what it gives
``memory``     the memory under test, driven as its user would
``measure``    one compaction, with all of these
``report``     all compactions together
"""
