"""The story that the demo's sessions are recorded from: what a user asks, what an agent answers and does, and a summary.

Owns the words of both; the code is in ``story_project`` and ``story_code``. Invariants: every command really runs in the
project's folder, with Python and git alone; no result depends on the day; one answer changes a file once, for some
harnesses run an answer's calls at the same time; ``LOST`` is said before the compaction and missing in ``SUMMARY``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from . import story_code as code

TITLE = "Add signed Norrpost webhooks"


class Call(NamedTuple):
    """One use of a tool: ``shell`` (command, description), ``read`` (path), ``write`` (path, content), ``edit`` (path, old,
    new) or ``todo`` (how many of ``TODO`` are done)."""

    tool: str
    words: tuple[Any, ...]


class Answer(NamedTuple):
    """One answer of the model: what it says, and the tools it calls with it."""

    text: str
    calls: tuple[Call, ...] = ()


class Turn(NamedTuple):
    """A prompt and the answers that it leads to."""

    prompt: str
    answers: tuple[Answer, ...]


def _sh(command: str, description: str) -> Call:
    return Call("shell", (command, description))


def _read(path: str) -> Call:
    return Call("read", (path,))


def _write(path: str, content: str) -> Call:
    return Call("write", (path, content))


def _edit(path: str, old: str, new: str) -> Call:
    return Call("edit", (path, old, new))


def _todo(done: int) -> Call:
    return Call("todo", (done,))


def _test() -> Call:
    return _sh("python3 -m unittest -q -f", "Run the tests up to the first that fails")


def _commit(subject: str, first: str = "") -> Call:
    return _sh(f"{first}git add -A && git commit -q -m '{subject}' && git log --oneline -1", "Commit")


def _test_and_commit(subject: str) -> Call:
    return _commit(subject, "python3 -m unittest -q -f && ")


TODO = (
    "Verify the signature in lantern/signature.py",
    "Map the events and add the route",
    "Limit how often one address may call",
)

BEFORE = (
    Turn(
        "Norrpost is our second carrier and their signed webhooks go live on Thursday. Add POST /hooks/norrpost to"
        " lantern/intake.py, their rules are in docs/norrpost.md. House rules: never touch migrations/ (the data team"
        " owns it), and nothing but the standard library.",
        (
            Answer(
                "I read their rules and the code that is there.",
                (_read("docs/norrpost.md"),),
            ),
            Answer("", (_read("lantern/intake.py"),)),
            Answer("", (_read("lantern/store.py"),)),
            Answer("", (_todo(0),)),
            Answer(
                "The plan is in the list. Their event id fits our column `carrier_ref`, so the table can stay as it is."
                " One question before I write anything: what should the route answer when the signature is right but"
                " the body cannot be used? With 400 Norrpost tries again for 24 h, with 409 it stops sending the event."
            ),
        ),
    ),
    Turn(
        "409, then we look by hand. And never log a body, there are addresses in it. One preference: small pure"
        " functions, no class for the verifier.",
        (
            Answer(
                "First the signature, with its tests.",
                (
                    _write("lantern/signature.py", code.SIGNATURE),
                    _write("tests/test_signature.py", code.TEST_SIGNATURE),
                ),
            ),
            Answer("", (_test(),)),
            Answer(
                "A header with other letters than ASCII raises instead of being refused: `compare_digest` takes such"
                " text only as bytes. Anybody could make us answer 500 with it.",
                (_edit("lantern/signature.py", code.COMPARISON, code.COMPARISON_OF_BYTES),),
            ),
            Answer("", (_test(),)),
            Answer("", (_commit("Verify the signature of Norrpost"), _todo(1))),
            Answer("The signature is verified by two pure functions; four tests pass, and it is committed."),
        ),
    ),
    Turn(
        "Good catch. Now the events and the route. An unknown eventType must never be dropped: store it with the status"
        ' "unknown" and log the type at warning. Watch the answer codes, 401 pages their on-call.',
        (
            Answer(
                "",
                (
                    _write("lantern/norrpost.py", code.NORRPOST),
                    _edit("lantern/intake.py", code.ROUTE_BEFORE, code.ROUTE),
                    _write("tests/test_intake.py", code.TEST_INTAKE),
                ),
            ),
            Answer("", (_test(),)),
            Answer(
                "A repeated delivery ends in an IntegrityError, because `append` inserts the same key twice.",
                (_edit("lantern/store.py", code.APPEND, code.APPEND_ONCE),),
            ),
            Answer("", (_test(),)),
            Answer("", (_commit("Accept signed events of Norrpost"), _todo(2))),
            Answer(
                "The route answers 204, 401 for a wrong signature alone, and 409 for a body that cannot be used. Both"
                " hub scans are `in_transit`, because customers are shown no hubs."
            ),
        ),
    ),
    Turn(
        "What happens to an event whose shipmentNo we do not know, and who sees the warnings?",
        (
            Answer("", (_sh("git grep -n -e parcel_id -e 'log\\.' lantern", "Look where parcels and logs are used"),)),
            Answer(
                "It is stored all the same: there is no table of parcels here, the shops bring the number when they ask"
                " for a timeline. So an event may come before the shop knows the parcel, and nothing is lost. The"
                " warnings go to standard error by Python's last resort, because nobody configures logging in"
                " lantern.intake; systemd keeps them in the journal, 30 days by default. They name the type alone."
            ),
        ),
    ),
    Turn(
        "One thing before you go on: 8080 is the carrier simulator on my machine, leave that alone. Use port 8091 from"
        " now on, and make it the default in settings too.",
        (
            Answer(
                "",
                (_sh("sed -i 's/8080/8091/' lantern/settings.py README.md && git grep -n 80[89]", "Change the port"),),
            ),
            Answer("", (_test_and_commit("Serve on 8091"),)),
            Answer("It serves on 8091 unless LANTERN_PORT says otherwise; the README says so too."),
        ),
    ),
    Turn(
        "Next: a parcel that is delivered must not go back to in_transit on the tracking page because a late hub scan"
        " comes in. Don't drop the event, only the shown status should be right.",
        (
            Answer(
                "I let the store sort by how final a status is.",
                (
                    _read("lantern/tracking.py"),
                    _write("tests/test_tracking.py", code.TEST_TRACKING),
                    _edit("lantern/store.py", code.TIMELINE, code.TIMELINE_BY_RANK),
                ),
            ),
            Answer("", (_test(),)),
            Answer(
                "That needs a column `rank`, so a change in migrations/, which is the data team's. I give this way up"
                " and choose among the events in tracking.py instead.",
                (_sh("git checkout -q lantern/store.py && git status --short", "Take the change back"),),
            ),
            Answer("", (_edit("lantern/tracking.py", code.LAST_EVENT, code.LAST_FINAL),)),
            Answer("", (_test(),)),
            Answer("", (_commit("Show a delivery though a late scan follows"),)),
            Answer(
                "A late scan changes nothing of what is shown, and stays in the timeline. Sorting in the store was a"
                " dead end, it would have needed a new column."
            ),
        ),
    ),
    Turn(
        "Correction: not 409. Their support says that it pages them too. Answer 422 for a body that cannot be used.",
        (
            Answer(
                "",
                (
                    _sh(
                        "sed -i 's/409/422/' lantern/intake.py tests/test_intake.py && python3 -m unittest -q -f",
                        "Answer 422, and test",
                    ),
                ),
            ),
            Answer("It answers 422 now. docs/norrpost.md still speaks of 409; that file is Norrpost's own text."),
        ),
    ),
    Turn(
        "Now replay last week's sample, samples/norrpost-week.jsonl, and give me the numbers; each line is one event."
        " Then commit, but don't push anything, I want to rebase first.",
        (
            Answer("", (_write("lantern/replay.py", code.REPLAY),)),
            Answer("", (_sh("python3 -m lantern.replay samples/norrpost-week.jsonl", "Replay the week"),)),
            Answer("", (_commit("Answer 422 for what cannot be used, and replay files of events"),)),
            Answer(
                "Of 240 lines 230 are new events, 8 are repeated and 2 cannot be used (lines 57 and 181). Three are of"
                " types that their rules do not name. It is committed, and nothing was pushed."
            ),
        ),
    ),
)

SUMMARY = """\
1. Primary request: the user adds a second carrier, Norrpost, whose webhooks are signed, to the parcel service lantern:
   POST /hooks/norrpost. Its rules are in docs/norrpost.md.
2. Concepts: HMAC signatures, a SQLite event store, repeated deliveries, events that arrive late.
3. Files: lantern/signature.py verifies calls (401 for a wrong signature); lantern/norrpost.py maps each eventType;
   lantern/intake.py has the new route; lantern/store.py takes a repeated event once; lantern/tracking.py chooses the
   shown status; lantern/replay.py counts the events of samples/norrpost-week.jsonl. Tests lie in
   tests/.
4. Errors and fixes: comparing signatures failed for some headers, and a repeated delivery failed in the database; both
   were fixed. Sorting in the store was tried and given up.
5. The answer for a body that cannot be used was changed on request.
6. Pending: limit how often one address may call.
7. Current state: all tests pass, and everything is committed.
"""

LOST = ("8091", "never touch migrations/", "TypeError: comparing strings", "422", "240 lines", "don't push")

QUESTION = "What limit do you want, and for each address or in total?"

AFTER = (
    Turn(
        "Go on with the limit: too many calls should get 429, before anything else is looked at.",
        (
            Answer("", (_read("lantern/intake.py"),)),
            Answer(f"The route knows the caller's address, so it can be counted in `answer`. {QUESTION}"),
        ),
    ),
    Turn(
        "30 per minute per address. Keep it in memory, one process is enough.",
        (
            Answer(
                "",
                (
                    _write("lantern/limits.py", code.LIMITS),
                    _write("tests/test_limits.py", code.TEST_LIMITS),
                    _edit("lantern/intake.py", code.ROUTES, code.LIMITED_ROUTES),
                ),
            ),
            Answer("", (_test_and_commit("Refuse the 31st call of an address in a minute"), _todo(3))),
            Answer(
                "The 31st call of one address within a minute gets 429, whatever it holds. All tests pass; it is"
                " committed, and not pushed."
            ),
        ),
    ),
)


def answers(turn: Turn, tools: Callable[[Sequence[Call]], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """A turn's answers as the model server wants them; ``tools`` make one harness's calls."""
    for answer in turn.answers:
        said = {"text": answer.text} if answer.text else {}
        yield {**said, **({"tools": tools(answer.calls)} if answer.calls else {})}
