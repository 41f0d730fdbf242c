from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ledger.text import canonical_json, short_hash

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
