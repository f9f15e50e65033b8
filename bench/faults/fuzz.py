"""Fuzzing what reads words of others: the four harness readers, hook payloads, answers of models, questions to the search.

Nothing raises but what is documented, nothing takes longer than its deadline, and every byte of a transcript is in a record.
A new failure prints its input; put it into ``corpus/<target>/`` so that it is tried first from then on.
"""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpus import PROJECT
from bench.faults import process
from bench.faults.mutate import mutated
from bench.faults.parts import Part
from bench.faults.place import Place
from bench.faults.programs import Format, database_of, formats
from obsmem import harnesses

MAGIC = b"SQLite format 3\x00"
CORPUS = Path(__file__).with_name("corpus")
FIXTURES = PROJECT / "fixtures" / "harnesses"
LARGEST_SEED = 12_000  # bytes
DEADLINE = 10  # seconds of one input
LONGEST_SENTENCE = 4000  # characters of what is said of a config file
SHORT_SECONDS, SECONDS, LONG_SECONDS = 6.0, 300.0, 3600.0
ENDINGS = {"opencode": ".json"}
TASKS = ("observe", "reflect", "drop")
Try = Callable[[bytes], None]


class Wrong(Exception):
    """What a target did that it must not."""


class Target(NamedTuple):
    """What is fuzzed: its seeds, and a function that raises where something is wrong."""

    name: str
    seeds: list[bytes]
    attempt: Try


def targets(folder: str) -> list[Target]:
    """Everything that is fuzzed; ``folder`` is where files may be written."""
    found = [Target(f"reader of {name}", seeds_of(name), _reading(name, folder)) for name in sorted(harnesses.REGISTRY)]
    payloads = [path.read_bytes() for path in sorted(FIXTURES.glob("*/payloads/*.json"))]
    found.append(Target("hook payloads", stored("payloads") + payloads, _payload))
    found.append(Target("answers of models", stored("answers"), _answer))
    found.append(Target("questions and dates", stored("questions"), _question))
    found.append(Target("config files", stored("configs"), _config(folder)))
    return found + [_of_database(form, folder) for form in formats()]


def stored(name: str) -> list[bytes]:
    """The inputs that are kept for a target."""
    folder = CORPUS / name
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []


def seeds_of(harness: str) -> list[bytes]:
    """What a reader is begun with: what is kept, then the transcripts of its cases that are small."""
    files = sorted(FIXTURES.glob(f"{harness}/*/transcript.*"))
    small = [path.read_bytes() for path in files if path.is_file() and path.stat().st_size <= LARGEST_SEED]
    return stored(harness) + [data for data in small if data]


def _reading(name: str, folder: str) -> Try:
    module = harnesses.load(name)

    def attempt(data: bytes) -> None:
        ending = ".jsonl" if data[:200].count(b"}\n{") else ENDINGS.get(name, ".jsonl")
        path = os.path.join(folder, "0aaa1111-2222-4333-8444-555566667777" + ending)
        Path(path).write_bytes(data)
        module.recognise(path, data[:4096])
        for source in module.sources(path):
            raws = list(module.records(source, 0, 0))
            if source.path == path and b"".join(raw.data for raw in raws) != data:
                raise Wrong("the records joined are not the file")
            _read(module, source, raws)

    return attempt


def _of_database(form: Format, folder: str) -> Target:
    """Words that stand in one row of a program's database, or the bytes of all of it."""
    module = harnesses.load(form.harness)
    table, keys, words = form.words
    made = database_of(form)
    values = [value for step in form.steps for _, row in step for value in row if isinstance(value, (str, bytes))]
    seeds = [value.encode() if isinstance(value, str) else value for value in values if len(value) > 40]

    def attempt(data: bytes) -> None:
        path = os.path.join(folder, form.file)
        Path(path).write_bytes(data if data.startswith(MAGIC) else made)
        if not data.startswith(MAGIC):
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=OFF")
                first = f"(SELECT {keys} FROM {table} WHERE length({words}) > 40 LIMIT 1)"
                connection.execute(f"UPDATE {table} SET {words}=? WHERE {keys}={first}", (data,))
        module.recognise(path, Path(path).read_bytes()[:4096])
        for source in module.sources(path):
            try:
                raws = list(module.records(source, 0, 0))
            except OSError:
                continue  # a damaged database is not read, and what was read of it stays
            _read(module, source, raws)

    return Target(f"database of {form.name}", [made, *sorted(set(seeds), key=seeds.index)], attempt)


def _read(module: Any, source: Any, raws: list[Any]) -> None:
    """Read every record, the state going through JSON in the middle; what blocks() gives must be what was read."""
    reader = module.reader(source, None, lambda: iter(()))
    for index, raw in enumerate(raws):
        if index == len(raws) // 2:
            reader = module.reader(source, json.loads(json.dumps(reader.state())), lambda: iter(()))
        parsed = reader.read(raw)
        if raw.complete and raw.data.strip() and not parsed.entries and not parsed.skipped and parsed.measure is None:
            continue  # a record that only says how the session goes on
        again = module.blocks(raw.data)
        for entry in parsed.entries:
            if not isinstance(entry.text, str) or any("\ud800" <= sign <= "\udfff" for sign in entry.text):
                raise Wrong(f"an entry's text cannot be written: {entry.text[:40]!r}")
        if len(again) < len(parsed.entries):
            raise Wrong("an entry that was read cannot be had again from its record")
    json.dumps(reader.state())
    reader.session.id.encode()


def _payload(data: bytes) -> None:
    from obsmem.core.hooks import HookAnswer
    from obsmem.interfaces.hook import parse_payload

    try:
        payload = parse_payload(data)
    except (ValueError, RecursionError):
        return  # a hook that cannot read its payload ends with 0 and a line in the log; Place.hook tries that
    for name in harnesses.REGISTRY:
        module = harnesses.load_hooks(name)
        for event in module.EVENTS:
            what = module.read_event(event, payload)
            for value in (what.cwd, what.transcript, what.session_id):
                if not isinstance(value, str):
                    raise Wrong(f"{name} {event}: {value!r} is no text")
            answer = module.answer(what, HookAnswer("text", "notice"))
            if answer:
                json.loads(answer)
        module.read_output(payload)


def _answer(data: bytes) -> None:
    from obsmem.core.answers import parse_answer
    from obsmem.core.errors import WorkerError

    text = (
        data.decode("utf-8", "surrogatepass" if data.count(b"\xed") else "replace")
        if _is_text(data)
        else data.decode("latin-1")
    )
    for task in TASKS:
        try:
            found = parse_answer(text, task)
        except WorkerError:
            continue
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise Wrong(f"{task}: {found!r} is no list of proposals")


def _config(folder: str) -> Try:
    def attempt(data: bytes) -> None:
        from obsmem.core.errors import ConfigError
        from obsmem.system import config

        path = os.path.join(folder, config.PROJECT_FILE)
        Path(path).write_bytes(data)
        os.environ[config.CONFIG_VARIABLE] = path
        try:
            config.load(folder)
        except ConfigError as error:
            if len(str(error)) > LONGEST_SENTENCE:
                raise Wrong(f"a sentence of {len(str(error))} characters") from error

    return attempt


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except ValueError:
        return False
    return True


def _question(data: bytes) -> None:
    from obsmem.core.dates import read_date, take_date
    from obsmem.core.errors import ObsmemError
    from obsmem.core.identifiers import read_terms, split, whole_names
    from obsmem.store.search import word_expression
    from obsmem.system.local_time import local_clock
    from obsmem.tasks.search_pages import read_page
    from obsmem.tasks.search_scope import read_row

    text = data.decode("utf-8", "replace")
    for term in read_terms(text):
        word_expression(term)
    split(text)
    whole_names(text)
    now = 1_780_000_000_000
    for reader in (lambda: read_date(text, now, local_clock), lambda: take_date(text, now, local_clock), lambda: read_page(text),
                   lambda: read_row(text)):  # fmt: skip
        try:
            reader()
        except ObsmemError:
            continue


def fuzz(short: bool, chance: random.Random, index: int, name: str, seconds: float = 0.0) -> Part:
    """One target for so many seconds of processor time, in a child."""
    seconds = seconds or (SHORT_SECONDS if short else SECONDS)
    part = Part(f"fuzzing, {seconds:g} s: {name}")
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        part.tried, wrong = _in_child(index, folder, chance.randrange(1 << 30), seconds)
        for what, data in wrong:
            part.fault(name, f"{what}; input {base64.b85encode(data).decode()[:400]}")
            _keep(name, data)
    return part


def _keep(name: str, data: bytes) -> None:
    """Leave a failing input where a person finds it."""
    folder = os.path.join(tempfile.gettempdir(), "faults-inputs")
    os.makedirs(folder, exist_ok=True)
    Path(folder, f"{name.replace(' ', '-')}-{abs(hash(data)) % 10**8}").write_bytes(data)


def _in_child(index: int, folder: str, seed: int, seconds: float) -> tuple[int, list[tuple[str, bytes]]]:
    def work() -> tuple[int, list[tuple[str, bytes]]]:
        return attempt_for(targets(folder)[index], random.Random(seed), seconds)

    return process.ask(work, dict(os.environ), deadline=seconds * 10 + 120)


class _Slow(Exception):
    pass


def _ring(number: int, frame: object) -> None:
    raise _Slow


def attempt_for(
    target: Target, chance: random.Random, seconds: float, tries: int = 0
) -> tuple[int, list[tuple[str, bytes]]]:
    """Try a target's seeds, then mutations of them, for some seconds (or ``tries``); (tries, what was wrong with which input)."""
    signal.signal(signal.SIGALRM, _ring)
    wrong: dict[str, bytes] = {}
    done = 0
    pool = list(target.seeds)
    began = time.process_time()
    while (done < tries) if tries else (time.process_time() - began < seconds):
        data = pool[done] if done < len(pool) else mutated(chance.choice(pool), pool, chance)
        done += 1
        signal.alarm(DEADLINE)
        try:
            target.attempt(data)
        except BaseException as error:
            wrong.setdefault(_named(error), data)
        finally:
            signal.alarm(0)
    return done, list(wrong.items())


def _named(error: BaseException) -> str:
    """An error with the last place of ours that it came from, so that one mistake is told once."""
    where, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "obsmem" in name:
            where = f"{os.path.basename(name)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {where}: {str(error)[:120]}"


def questions(short: bool, chance: random.Random) -> Part:
    """Odd questions, put to a store with the demo in it, in each mode."""
    part = Part("fuzzing of search")
    with Place() as place:
        place.grow(62)
        place.maintain()
        seed, tries = chance.randrange(1 << 30), 400 if short else 8000
        for where, what in place.ask(lambda: _ask_many(place.home, seed, tries)):
            part.fault(where, what)
        part.tried += tries
    return part


def _ask_many(home: str, seed: int, tries: int) -> list[tuple[str, str]]:
    from obsmem.core.errors import ObsmemError
    from obsmem.core.finds import Query, SearchMode
    from obsmem.tasks.search import search
    from obsmem.tasks.store import open_store

    chance, pool, wrong = random.Random(seed), stored("questions"), []
    modes: tuple[SearchMode, ...] = ("words", "words", "exact", "regex")
    with open_store(home, readonly=True) as store:
        for _ in range(tries):
            text = mutated(chance.choice(pool), pool, chance)[:2000].decode("utf-8", "replace")
            mode = chance.choice(modes)
            more = text[:40] if chance.random() < 0.1 else ""
            signal.signal(signal.SIGALRM, _ring)
            signal.alarm(DEADLINE + 5)
            try:
                found = search(store, Query(text, mode, after=more, own=chance.random() < 0.5), seconds=2.0)
                json.dumps([hit._asdict() for hit in found.hits]).encode()
            except ObsmemError:
                pass
            except BaseException as error:
                wrong.append((f"{mode} {text[:60]!r}", _named(error)))
            finally:
                signal.alarm(0)
    return wrong


ODD_PAYLOADS = (
    b"", b"{", b"[]", b"7", b"null", b"\x00" * 50, b"\xff\xfe\x00", b"[" * 100_000, b'{"a":' * 50_000, b'{"session_id": "' + b"x" * (17 << 20),
    b'{"session_id": 7, "transcript_path": [], "cwd": {}}', b'{"transcript_path": "/dev/zero", "cwd": "/"}',
    b'{"transcript_path": "/proc/self/mem", "session_id": "../../x"}', b'{"transcript_path": "\\u0000", "cwd": "\\u0000"}',
    b'{"transcript_path": "\\ud800", "session_id": "\\udfff", "cwd": "\\ud800"}', b"\xef\xbb\xbf{}\r\n",
)  # fmt: skip


def payloads(short: bool, chance: random.Random) -> Part:
    """Odd payloads and mutated ones, given to every hook of every harness: status 0, and nothing or JSON is printed."""
    part = Part("odd hook payloads")
    with Place() as place:
        place.grow(30)
        place.maintain("--before-compact")
        seeds = [path.read_bytes() for path in sorted(FIXTURES.glob("*/payloads/*.json"))]
        own = [place.payload(name) for name in ("Stop", "UserPromptSubmit", "SessionStart-compact", "PostToolUse")]
        for name in sorted(harnesses.REGISTRY):
            events = [harnesses.TURN_ENDS[name][0], *harnesses.load_hooks(name).EVENTS, "NoSuchEvent"]
            given = [(event, data) for event in events for data in ODD_PAYLOADS]
            given += [
                (chance.choice(events), mutated(chance.choice(own + seeds), seeds, chance))
                for _ in range(60 if short else 3000)
            ]
            for event, data in given if not short else chance.sample(given, 40):
                ended = process.run(process.hook(name, event, "--part", "1/4"), place.environment, given=data)
                good = ended.status == 0 and not ended.err and not ended.hung and (not ended.out or _is_json(ended.out))
                what = f"status {ended.status}, out {ended.out[:60]!r}, err {ended.err[-200:]!r}"
                part.expect(good, f"{name} {event} {data[:60]!r}", what)
            process.until_quiet(place.home)
    return part


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True
