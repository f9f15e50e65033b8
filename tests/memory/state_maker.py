"""States, memories and sessions for the tests of the block: seeded random ones, and some written by hand."""

from __future__ import annotations

import random

from obsmem.core.fold import State, fold
from obsmem.core.ids import content_id
from obsmem.core.model import Action, Block, Card, Entry, Memory, Note, Pin, Reflection, Session
from obsmem.core.tokens import estimate
from obsmem.memory.cards import CardBuilder
from obsmem.memory.lines import line
from obsmem.memory.render import render
from tests.memory.card_entries import Script

SESSION = Session("claude-code", "11111111-2222", handle="abcd", cwd="/repo")
KEY = b"k" * 32

TEXTS = {
    "plain": "the parser reads every line of config.py twice because parse_config() opens it again; never do that",
    "cjk": "解析器 每次 都 会 读取 两遍 配置文件 決して 二回 読まない 설정 파일을 다시 읽지 마세요",
    "emoji": "🧪🧪🧪 🚀🚀 👩\u200d💻👩\u200d💻 🔥🔥🔥🔥 ✅ ❌❌ 🗂️🗂️ fix",
    "dense": "0x7fff12a9 {[(<>)]} 12:45:33.991 ==>>!! a/b/c.py:12:9 $PATH;&& 9999999999 %%%% ####",
    "broken": "\x1b[31mred\x1b[0m a\r\nb tab\there zero\u200bwidth line\u2028end \x00nul \u202egnol",
}
WORDS = {kind: text.split(" ") for kind, text in TEXTS.items()}


def cards(script: Script, cwd: str = "") -> list[Card]:
    """The cards of hand-written entries."""
    builder = CardBuilder("abcd", cwd=cwd)
    for entry in script.entries:
        builder.feed(entry)
    return builder.take()


def state(script: Script, cwd: str = "") -> State:
    """The folded state of hand-written entries."""
    return fold(cards(script, cwd), cwd)


def block(found: State, memory: Memory | None = None, budget: int = 8_000, session: Session = SESSION) -> Block:
    """The block of a state, with the key of the tests."""
    return render(session, found, memory or Memory(), budget=budget, key=KEY)


def text(found: State, memory: Memory | None = None, budget: int = 8_000) -> str:
    """All parts of the block of a state."""
    return "\n".join(block(found, memory, budget).parts)


def note(words: str, *seqs: int, at: int = 60_000, relevance: str = "medium", evidence: str = "tool") -> Note:
    """A verified note that cites entries of the session ``abcd``."""
    ids = tuple(f"abcd.{seq}" for seq in seqs)
    made = Note(content_id(words, ids), words, at, relevance, ids, evidence, "verified", 0)  # type: ignore[arg-type]
    return made._replace(tokens=estimate(line(made)))


def say(random_: random.Random, kind: str, least: int, most: int) -> str:
    """Some words of one kind."""
    return " ".join(random_.choice(WORDS[kind]) for _ in range(random_.randint(least, most)))


def random_entries(seed: int) -> list[Entry]:
    """A session of every kind of deed, its words of one kind that the seed chooses."""
    random_ = random.Random(seed)
    kind = random_.choice([*WORDS])
    script = Script()
    for _ in range(random_.randint(1, 60)):
        deed = random_.randrange(8)
        path = f"src/{random_.choice(WORDS[kind])[:40].replace('/', '_')}_{random_.randrange(30)}.py"
        if deed <= 1:
            order = random_.choice(["Never ", "Use ", "Always ", "", "Don't "])
            script.user(order + say(random_, kind, 1, random_.choice([5, 80, 900])))
        elif deed == 2:
            script.edit(
                path, say(random_, kind, 1, 9), f"def f_{random_.randrange(99)}():\n    " + say(random_, kind, 1, 9)
            )
        elif deed == 3:
            script.read(path)
        elif deed == 4:
            good = random_.random() < 0.5
            script.run(
                "pytest -q " + path, "1 passed" if good else f"FAILED {path}::test_a\n1 failed", good, int(not good)
            )
        elif deed == 5:
            script.agent(say(random_, kind, 1, 200))
        elif deed == 6:
            items = [(str(i), random_.choice(["open", "doing", "done"]), say(random_, kind, 1, 30)) for i in range(6)]
            script.todo(*items)
        else:
            script.result(
                script.call(Action("run", command=say(random_, kind, 1, 60))), say(random_, kind, 1, 90), False, 2
            )
    return script.entries


def random_memory(seed: int, last: int) -> Memory:
    """Notes, reflections and pins about a session whose entries go up to ``last``."""
    random_ = random.Random(-seed)
    kind = random_.choice([*WORDS])
    notes = [
        note(
            f"{number} " + say(random_, kind, 1, random_.choice([10, 60])),
            random_.randint(0, last),
            at=(number + 1) * 60_000,
            relevance=random_.choice(["low", "medium", "high", "critical"]),
            evidence=random_.choice(["user", "tool", "agent"]),
        )
        for number in range(random_.choice([0, 5, 300]))
    ]
    texts = [f"{number} " + say(random_, kind, 3, 40) for number in range(random_.choice([0, 3, 60]))]
    reflections = [Reflection(content_id(words, ()), words, (), estimate(words)) for words in texts]
    pins = [Pin(f"p{n}", say(random_, kind, 1, 1_500), "session", 1) for n in range(random_.choice([0, 0, 4]))]
    return Memory(tuple(notes), tuple(reflections), frozenset(), tuple(pins))
