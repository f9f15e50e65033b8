"""A class made without the checks of ``typing`` is what ``typing`` would have made."""

from __future__ import annotations

import copy
import pickle
import typing

from obsmem.core.tuples import NamedTuple


class Place(NamedTuple):
    """Where something stands."""

    path: str
    line: int = 1
    names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As people write it."""
        return f"{self.path}:{self.line}"

    @classmethod
    def first(cls, path: str) -> Place:
        """The first line of a file."""
        return cls(path)


class Same(typing.NamedTuple):
    """Where something stands."""

    path: str
    line: int = 1
    names: tuple[str, ...] = ()


def test_a_class_has_the_fields_defaults_and_words_that_typing_would_give_it() -> None:
    for name in ("_fields", "_field_defaults", "__doc__", "__module__", "__match_args__"):
        assert getattr(Place, name) == getattr(Same, name), name
    assert Place.__qualname__ == "Place" and list(Place.__annotations__) == list(Same.__annotations__)
    assert Place.__mro__[1:] == Same.__mro__[1:] == (tuple, object)
    assert repr(Place("a", 2)) == "Place(path='a', line=2, names=())"


def test_its_values_are_tuples_with_the_methods_of_the_class() -> None:
    place = Place("a.py", names=("x",))
    assert place == ("a.py", 1, ("x",)) == Same("a.py", 1, ("x",)) and hash(place) == hash(Same("a.py", 1, ("x",)))
    assert place.text == "a.py:1" and Place.first("b").text == "b:1"
    assert place._replace(line=7) == Place("a.py", 7, ("x",)) and place._asdict()["names"] == ("x",)
    for copied in (pickle.loads(pickle.dumps(place)), copy.deepcopy(place)):
        assert copied == place and type(copied) is Place
