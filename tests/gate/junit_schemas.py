"""What the two common schemas of JUnit's XML want: Jenkins' (junit-10) and Ant's.

Each is a table of elements, written down by hand: which attributes an element must
have, which it may have, and which elements are in it, in which order.
"""

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

ANY = re.compile(r"[\s\S]*")
TOKEN = re.compile(r"[\s\S]*\S[\s\S]*")  # at least one character
WHOLE = re.compile(r"\d+")
DECIMAL = re.compile(r"\d+(\.\d*)?")
SUREFIRE = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")  # without a zone


@dataclass(frozen=True)
class Element:
    """Attributes with their patterns, and elements: each (least, most), in order."""

    must: dict[str, re.Pattern[str]] = field(default_factory=dict)
    may: dict[str, re.Pattern[str]] = field(default_factory=dict)
    inner: tuple[tuple[str, int, float], ...] = ()
    in_order: bool = True
    one_of: bool = False  # at most one element in all


MANY = float("inf")
ANT = {
    "testsuites": Element(inner=(("testsuite", 0, MANY),)),
    "testsuite": Element(
        must={
            "name": TOKEN,
            "package": ANY,
            "id": WHOLE,
            "hostname": TOKEN,
            "timestamp": MOMENT,
            "tests": WHOLE,
            "failures": WHOLE,
            "errors": WHOLE,
            "time": DECIMAL,
        },
        may={"skipped": WHOLE},
        inner=(
            ("properties", 1, 1),
            ("testcase", 0, MANY),
            ("system-out", 1, 1),
            ("system-err", 1, 1),
        ),
    ),
    "testcase": Element(
        must={"name": ANY, "classname": ANY, "time": DECIMAL},
        inner=(("skipped", 0, 1), ("error", 0, 1), ("failure", 0, 1)),
        one_of=True,
    ),
    "error": Element(must={"type": ANY}, may={"message": ANY}),
    "failure": Element(must={"type": ANY}, may={"message": ANY}),
    "properties": Element(),
    "system-out": Element(),
    "system-err": Element(),
}
JENKINS = {
    "testsuites": Element(
        may={
            "name": ANY,
            "time": SUREFIRE,
            "tests": ANY,
            "failures": ANY,
            "errors": ANY,
        },
        inner=(("testsuite", 0, MANY),),
    ),
    "testsuite": Element(
        must={"name": ANY, "tests": ANY, "failures": ANY, "errors": ANY},
        may={
            "time": SUREFIRE,
            **dict.fromkeys(
                ["group", "skipped", "timestamp", "hostname", "id", "package"], ANY
            ),
            **dict.fromkeys(["file", "log", "url"], ANY),
        },
        inner=tuple(
            (name, 0, MANY)
            for name in (
                "testsuite",
                "properties",
                "testcase",
                "system-out",
                "system-err",
            )
        ),
        in_order=False,
    ),
    "testcase": Element(
        must={"name": ANY},
        may=dict.fromkeys(["time", "classname", "group"], ANY),
        inner=tuple(
            (name, 0, MANY)
            for name in ("skipped", "error", "failure", "system-out", "system-err")
        ),
        in_order=False,
    ),
    "error": Element(may={"type": ANY, "message": ANY}),
    "failure": Element(may={"type": ANY, "message": ANY}),
    "properties": Element(),
    "system-out": Element(),
    "system-err": Element(),
}
SCHEMAS = {"ant": ANT, "jenkins": JENKINS}


def wrong_in(schema: dict[str, Element], text: str) -> list[str]:
    """Everything in a text of XML that a schema refuses."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    return list(_wrong(schema, root))


def _wrong(schema, element):
    known = schema[element.tag]
    allowed = known.must | known.may
    yield from (
        f"{element.tag} needs {name}" for name in known.must.keys() - element.attrib
    )
    for name, value in element.items():
        if name not in allowed:
            yield f"{element.tag} has {name}"
        elif not allowed[name].fullmatch(value):
            yield f"{element.tag} has {name}={value!r}"
    names = [inner.tag for inner in element]
    for name, least, most in known.inner:
        if not least <= names.count(name) <= most:
            yield f"{element.tag} has {names.count(name)} {name}"
    order = [name for name, _, _ in known.inner]
    if not set(names) <= set(order):
        yield f"{element.tag} holds {names}"
    elif known.in_order and names != sorted(names, key=order.index):
        yield f"{element.tag} is in the order {names}"
    if known.one_of and len(names) > 1:
        yield f"{element.tag} holds {names}"
    for inner in element:
        if inner.tag in schema:
            yield from _wrong(schema, inner)
