"""Labels of a moment: what samples show, under the keys that the API knows."""

from __future__ import annotations

import json

import pytest

from attribution.lives.labels import then

AB = {"foo-bar": "a", "foo_bar": "b"}
BOTH = {"label_foo_bar_conflict1": "a", "label_foo_bar_conflict2": "b"}


@pytest.mark.parametrize(
    ("told", "shown", "ever", "right"),
    [
        ({"x": "1"}, {}, {}, {"x": "1"}),
        ({"x": "1"}, {"label_x": "1"}, {"label_x": "1"}, {"x": "1"}),
        ({"x": "2", "y": "1"}, {"label_x": "1"}, {"label_x": "2"}, {"x": "1", "y": "1"}),
        ({"x": "2"}, {}, {"label_x": "2"}, {}),
        ({}, {"label_x": "1"}, {}, {"label_x": "1"}),
        ({"x": "2"}, {"x": "1"}, {"x": "2"}, {"x": "1"}),
        (
            {"ray.io/clusterName": "b"},
            {"label_ray_io_cluster_name": "a"},
            {},
            {"ray.io/clusterName": "a"},
        ),
        # Two keys of one form: told apart only while their values are those of the API.
        (AB, BOTH, BOTH, AB),
        (AB, {"label_foo_bar": "a"}, BOTH, {"label_foo_bar_conflict1": "a"}),
        ({"foo-bar": "a"}, BOTH, {"label_foo_bar": "a"}, BOTH),
        (AB, {}, BOTH, {}),
        # An unusual form that samples show tells two keys apart again.
        (
            {"fooBar": "2", "foo-bar": "3"},
            {"label_fooBar": "1", "label_foo_bar": "3"},
            {"label_fooBar": "2", "label_foo_bar": "3"},
            {"fooBar": "1", "foo-bar": "3"},
        ),
    ],
)
def test_labels_then(
    told: dict[str, str], shown: dict[str, str], ever: dict[str, str], right: dict[str, str]
) -> None:
    texts = "\n".join(json.dumps(labels) for labels in (ever, shown))
    assert json.loads(then(json.dumps(told), json.dumps(shown), texts)) == right


def test_what_agrees_is_the_text_of_the_api() -> None:
    told = '{"b": "1", "a": "2"}'
    assert then(told, '{"label_a":"2"}', '{"label_a":"2"}') is told
