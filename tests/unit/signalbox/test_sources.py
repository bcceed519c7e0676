import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbox import sources, yaml11
from signalbox.composing import DEEPEST, value_of
from signalbox.sources import Position, Unreadable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, width=32) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
YAMLISH = st.lists(
    st.sampled_from(["a", "Worker", ":", " ", "\n", "- ", "{", "}", "[", "]", ",", "&x ", "*x", "<<", "!!int ", "1"])
    | st.sampled_from(["---\n", "...\n", "\t", '"', "'", "|\n ", "# c\n", "? ", "é", "\u2028", "\x85", "\r\n", "\0"]),
    max_size=30,
).map("".join)


def read(text):
    return sources.parse("f.yaml", text.encode())


def value(text, problems=None):
    return value_of(read(text).documents[0].node, problems)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("on", True), ("Off", False), ("yes", True), ("NO", False), ("y", True), ("n", False), ("true", True),
        ("yEs", "yEs"), ("~", None), ("", None), ("null", None), ("nil", "nil"), ("2020-01-01", "2020-01-01"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"), ("1:30", "1:30"), ("017", 15), ("0o17", 15),
        ("089", 89), ("0o8", "0o8"), ("0x1F", 31), ("0x", "0x"), ("0b11", 3), ("-0b11", -3), ("+5", 5), ("1_000", 1000),
        ("_1", "_1"), ("._5", "._5"),
        ("1e3", 1000), ("2.0", 2), ("1.", 1), (".5", 0.5), ("1e-7", 1e-7), ("1.5e300", 1.5e300),
        ("1e400", "1e400"), ("-0", 0), ("=", "="), ("1.2.3", "1.2.3"), ("16Gi", "16Gi"), ('"1"', "1"), ("'on'", "on"),
        ("!!str 3", "3"), ("!foo 4", "4"), ('!!int "7"', 7), ("!!binary aGk=", "hi"),
        ("!!binary '*'", ""), ("! 12", "12"),
    ],
)  # fmt: skip
def test_scalars_are_what_kubectl_makes_of_them(written, expected):
    found = value(f"[{written}]" if written else "[~]")[0]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{on: 1, 1: 2, 2.5: 3, null: 4}", {"true": 1, "1": 2, "2.5": 3}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: {<<: {b: 1, c: 1}, b: 2}", {"a": {"b": 2, "c": 1}}),
        ("a: {b: 2, <<: {b: 1}}", {"a": {"b": 1}}),  # as kubectl has it, not as YAML has it
        ("a: {<<: [{b: 1}, {b: 2, c: 2}]}", {"a": {"b": 1, "c": 2}}),
        ('a: {"<<": {b: 1}}', {"a": {"<<": {"b": 1}}}),
        ('{\n\t"a":\t1\n}', {"a": 1}),
        (r'{"a": "\ud83d\ude00 \\ud83d\\ude00 \/"}', {"a": "😀 \\ud83d\\ude00 /"}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_mappings(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "b.c: must be set only once in its mapping", (4, 3)),
        ("{1: a, '1': b}", "1: must be set only once in its mapping", (1, 8)),
        ("a: [1, .nan]", "a[1]: must be a finite number", (1, 8)),
        ("a: -.inf", "a: must be a finite number", (1, 4)),
        ("a: 9223372036854775808", "a: must be an integer that fits 64 bits", (1, 4)),
        ("a: {~: 1}", "a: must be a string", (1, 5)),
        ("a: {? [b] : 1}", "a: must be a string", (1, 7)),
        ("a: {<<: 1}", "a.<<: must merge a mapping", (1, 5)),
    ],
)
def test_what_json_cannot_say_is_a_problem(text, said, at):
    problems = []
    value(text, problems)
    (problem,) = problems
    assert str(problem.fault).replace("[<<]", ".<<").startswith(said)
    assert read(text).position(problem.at) == Position(*at)


@pytest.mark.parametrize(
    ("content", "said", "at"),
    [
        (b"a: b: c", "mapping values are not allowed", (1, 5)),
        (b"a:\n\tb: 1", "a tab cannot indent, use spaces", (2, 1)),
        (b"a: 1\nb: \xff", "must be UTF-8 text", (2, 4)),
        (b"a: 1\nb: \0", "U+0000", (2, 4)),
        (b"\x7fELF\x02", "U+007F", (1, 1)),
        (b"a: [1", "must be YAML", (1, 6)),
        (b"a: {{ .Values.x }}\nb: }", "must be YAML", (2, 4)),
        (b"a: *b", "anchor that is set before", (1, 4)),
        (b"a: &b [*b]", "must not contain itself", (1, 8)),
        (b"[" * 900 + b"]" * 900, f"deeper than {DEEPEST} levels", (1, DEEPEST + 1)),
        (b"[" * 5000, "nesting depth", (1, 1001)),
        (b"a: !x!y 1", "undefined tag handle", (1, 4)),
    ],
)
def test_what_is_not_yaml_is_told_with_its_place(content, said, at):
    with pytest.raises(Unreadable) as caught:
        sources.parse("f.yaml", content)
    assert said in caught.value.message
    assert caught.value.position == Position(*at)


def test_aliases_cannot_stand_for_billions_of_values():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(Unreadable, match="aliases"):
        read("\n".join(lines))


def test_aliases_cannot_be_nested_without_end():
    lines = ["a0: &a0 x"] + [f"a{n}: &a{n} [[[[*a{n - 1}]]]]" for n in range(1, 100)]
    with pytest.raises(Unreadable, match="nested deeper"):
        read("\n".join(lines))


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("spec", (2, 1)), ("spec.types.Worker", (4, 5)), ("spec.types.Worker.replicas", (5, 7)),
        ("spec.types.Worker.template.spec", (4, 5)), ("spec.list[1]", (8, 7)), ("spec.list[1].a", (8, 7)),
        ("spec.list[7]", (6, 3)), ("spec.labels[a.b/c]", (10, 5)), ("spec.labels[a.b/c].x", (10, 5)),
        ("spec.labels.a", (11, 5)), ("spec.merged.one", (12, 13)), ("nowhere", (1, 1)), ("", (1, 1)),
    ],
)  # fmt: skip
def test_the_deepest_field_there_is_is_found(path, at):
    source = read(
        "kind: X\nspec:\n  types:\n    worker:\n      replicas: 1\n  list:\n    - 1\n    - a: 2\n"
        "  labels:\n    a.b/c: d\n    a: e\n  base: &b {one: 1}\n  merged: {<<: *b}\n"
    )
    assert source.locate(source.documents[0].node, path) == Position(*at)


def test_a_key_in_its_own_case_wins():
    source = read("{worker: 1, Worker: 2}")
    assert source.locate(source.documents[0].node, "Worker").column == 13
    assert source.locate(source.documents[0].node, "worker").column == 2


def test_directories_are_searched_for_manifests(tmp_path):
    for name in ("b.yaml", "a/c.yml", "a/d.json", "a/e.txt", ".git/f.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = sources.files([str(tmp_path), str(tmp_path / "b.yaml"), "-", "missing"])
    assert [name.removeprefix(f"{tmp_path}/") for name in found] == ["b.yaml", "a/c.yml", "a/d.json", "-", "missing"]


@settings(deadline=None)
@given(YAMLISH | st.text())
def test_any_text_is_read_or_refused_with_a_place_inside_it(text):
    lines = text.removeprefix("\ufeff").split("\n")
    try:
        source = read(text)
    except Unreadable as error:
        places = [error.position]
    else:
        problems = []
        for document in source.documents:
            found = value_of(document.node, problems)
            json.dumps(found, allow_nan=False)
            places = [source.locate(document.node, path) for path in ("spec", "Worker.a", "[0].a[1]", "a.a")]
            places += [source.position(problem.at) for problem in problems]
        places = places if source.documents else []
    for place in places:
        assert 1 <= place.line <= len(lines)
        assert 1 <= place.column <= len(lines[place.line - 1]) + 1


@given(st.binary())
def test_any_bytes_are_read_or_refused(content):
    try:
        read = sources.parse("f", content)
    except Unreadable as error:
        read = error
    assert isinstance(read, sources.Source) or read.position is not None


def whole(item):
    """JSON has one kind of number: a float without a fraction is an integer to Go."""
    if isinstance(item, dict):
        return {key: whole(inner) for key, inner in item.items()}
    if isinstance(item, list):
        return [whole(inner) for inner in item]
    return int(item) if isinstance(item, float) and item.is_integer() and int(item) in yaml11.INT64 else item


@settings(deadline=None)
@given(JSON.filter(lambda item: "Infinity" not in json.dumps(item)))
def test_what_is_written_is_read_back(item):
    problems = []
    assert value(yaml11.dump(item), problems) == whole(item)
    assert problems == []


@pytest.mark.parametrize("text", ["y", "on", "0o17", "1e3", "1_0", "", "~", "<<", "2020-01-01", "a: b", "- a", "a\nb"])
def test_strings_stay_strings(text):
    assert value(yaml11.dump({text: [text]})) == {text: [text]}


@given(st.text(max_size=500) | st.text("0123456789+-._exob", max_size=500))
def test_any_plain_scalar_has_a_value(text):
    found = yaml11.resolve(text)
    assert found is None or isinstance(found, str | int | float | bool)
    if isinstance(found, float) and not math.isfinite(found):
        assert text in yaml11.WORDS
