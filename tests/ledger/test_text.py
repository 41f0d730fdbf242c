from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.text import canonical_json, holds_credentials, short_hash, without_credentials

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(ANYTHING)
def test_canonical_json_is_json_and_can_be_stored(data: object) -> None:
    text = canonical_json(data)
    assert json.loads(text) == data
    text.encode()


def test_canonical_json_has_one_form() -> None:
    assert canonical_json({"b": "ü", "a": [1, None]}) == '{"a":[1,null],"b":"ü"}'
    assert canonical_json({"a": "\ud800"}) == '{"a":"\\ud800"}'


def test_short_hash() -> None:
    assert short_hash("") == "e3b0c44298fc1c14"
    assert short_hash("", 4) == "e3b0"


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("https://me:secret@host:6443/x", "https://host:6443/x"),
        ("https://me@host", "https://host"),
        ("http://:secret@host", "http://host"),
        ("https://me:p@ss@host/x", "https://host/x"),
        ("s3://KEY:se/cr+et@bills/focus/*.csv", "s3://bills/focus/*.csv"),
        ("s3://KEY:12345/cr@bills/focus", "s3://bills/focus"),
        (
            "cannot reach 'http://a:b@h1/x' nor http://c:d@h2",
            "cannot reach 'http://h1/x' nor http://h2",
        ),
    ],
)
def test_credentials_are_cut_out(text: str, public: str) -> None:
    assert without_credentials(text) == public
    assert holds_credentials(text)


@pytest.mark.parametrize(
    "text",
    ["http://host:9090/a", "http://host/a@b", "http://host?q=a@b", "s3://b/x@y", "me@host", ""],
)
def test_what_are_no_credentials_stays(text: str) -> None:
    assert without_credentials(text) == text
    assert not holds_credentials(text)
