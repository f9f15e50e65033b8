"""Benches: they measure and print, and assert nothing. None is needed to use the program.

``python -m bench.limits``  all of what is waited and paid for beside the machine's limits in one run, with pictures of growth.
``python -m bench.speed``   how fast transcripts are read, archived, indexed and observed, as a share of what parsing
                            their JSON alone costs; bytes on disk for each byte of transcript; memory for a huge file.
``python -m bench.hook``    what the hooks that every turn waits for cost above one bare interpreter start, what they
                            import, and whether their system calls depend on the transcript's length.
``python -m bench.storm``   64 hooks at once: failures, how many maintainers live at the same time, whether any is left.
``python -m bench.occupancy``  how well the occupancy that we give agrees with what the provider counts at the next request.
``python -m bench.replay``  whether stored sessions that run again under the same settings take the same decisions.

Each prints plain lines and, with ``--json FILE``, writes the same figures with the facts of the machine that matter
for them: no host names, no paths.
"""
