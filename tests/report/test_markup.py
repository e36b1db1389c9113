"""Whatever text a table holds, a page shows it as text."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibayes.report.markup import (
    count,
    element,
    fixed,
    named,
    number,
    percent,
    readable,
    shortened,
    together,
    trusted,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "&lt;b&gt; &amp;",
    "]]><!--",
    "\u202ereversed\u2069",
    "emoji 🐧 and \ud83d half",
    "new\nline\r\ttab\x00\x1b[31m",
    "x" * 10_000,
]


class Reader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text.append(data)


def read(markup):
    reader = Reader()
    reader.feed(str(markup))
    reader.close()
    return reader


@settings(deadline=None, max_examples=60)
@given(st.text() | st.sampled_from(HOSTILE), st.text() | st.sampled_from(HOSTILE))
def test_text_and_attributes_are_read_back_as_they_were_written(words, value):
    reader = read(element("p", words, element("b", words), title=value))
    assert reader.tags == ["p", "b"]
    assert reader.attributes == [("title", readable(value))]
    assert "".join(reader.text) == readable(words) * 2


@pytest.mark.parametrize("words", HOSTILE)
def test_names_are_one_isolated_element_of_bounded_length(words):
    reader = read(named(words))
    assert reader.tags == ["bdi"]
    assert len("".join(reader.text)) <= 60
    assert not set("".join(reader.text)) & set("\n\r\t\x00\x1b\u202e\u2069")
    str(named(words)).encode()  # no half of a character is left


def test_names_of_elements_and_attributes_are_checked():
    with pytest.raises(ValueError, match="is not the name of an element"):
        element("p onclick=x")
    with pytest.raises(ValueError, match="is not the name of an element"):
        element("p", **{"a b": "c"})


def test_children_are_flattened_and_attributes_left_out():
    made = together(["a", None, [element("i", 1)]], element("input", hidden=True, title=None, class_="b"))
    assert made.html == 'a<i>1</i><input hidden class="b">'
    assert trusted("<b>").html == "<b>"


def test_numbers_are_written_for_people():
    assert [count(7), count(9999), count(1_234_567)] == ["7", "9,999", "1,234,567"]
    assert [percent(0.5), percent(float("nan"))] == ["50.0\u202f%", "\u2013"]
    assert [number(0.12345), number(float("inf")), number(1e12)] == ["0.123", "∞", "1e+12"]
    assert [fixed(float("inf"), 2), fixed(float("nan"), 2), fixed(1e30, 2)] == ["∞", "\u2013", "1e+30"]
    assert shortened("a\nb") == "a↵b"
