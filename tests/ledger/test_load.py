from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import SettingsError
from ledger.load import find_file, load_settings
from ledger.settings import Settings, resolve_path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file's place in an empty folder, with no settings anywhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("RUNBILL_CONFIG", raising=False)
    return tmp_path / "runbill.yaml"


def test_without_a_file_the_defaults_hold(file: Path) -> None:
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert loaded.path is None
    assert loaded.base == file.parent


def test_flags_beat_the_environment_and_the_environment_beats_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("ledger: ./file\ncurrency: EUR\ntimezone: Asia/Shanghai\n")
    monkeypatch.setenv("RUNBILL_LEDGER", "./environment")
    monkeypatch.setenv("RUNBILL_CURRENCY", "CNY")
    monkeypatch.setenv("RUNBILL_PRICES__GPU", '{"H100": "2.50"}')
    loaded = load_settings(overrides={"ledger": "./flag"})
    assert loaded.settings.ledger == "./flag"
    assert loaded.settings.currency == "CNY"
    assert loaded.settings.timezone == "Asia/Shanghai"
    assert loaded.settings.prices is not None
    assert str(loaded.settings.prices.gpu["H100"]) == "2.50"
    assert loaded.origins == {
        "ledger": "flag",
        "currency": "environment",
        "timezone": "runbill.yaml",
        "prices.gpu.H100": "environment",
    }


def test_the_file_is_found_in_the_order_of_the_design(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_file() is None
    xdg = tmp_path / "xdg/runbill/runbill.yaml"
    xdg.parent.mkdir(parents=True)
    xdg.touch()
    assert find_file() == xdg
    file.touch()
    assert find_file() == Path("runbill.yaml")
    named = tmp_path / "named.yaml"
    named.touch()
    monkeypatch.setenv("RUNBILL_CONFIG", str(named))
    assert find_file() == named
    assert find_file(xdg) == xdg


def test_names_in_the_file_are_read_from_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("ledger: s3://${BUCKET}/books\n")
    monkeypatch.setenv("BUCKET", "bills")
    assert load_settings().settings.ledger == "s3://bills/books"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("timzone: UTC", "unknown key timzone (did you mean timezone)"),
        ("clusters: [{name: a, prometheus: {ulr: 'http://x'}}]", "clusters.0.prometheus.ulr"),
        ("rules: {RB102: {nigt: '22:00-06:00'}}", "(did you mean night)"),
        ("timezone: Mars/Olympus", "'Mars/Olympus' is not an IANA time zone"),
        ("currency: dollars", "'dollars' is not an ISO 4217 currency code"),
        ("clusters: [{name: a, kubernetes: {}}]", "exactly one of context, in_cluster"),
        ("clusters: [{name: a, prometheus: {url: x, export: y}}]", "exactly one of url or export"),
        ("billing: [{name: a, path: x}, {name: a, path: y}]", "the name 'a' stands twice"),
        ("identity: {experiment: ['labl:x']}", "identity.experiment.0"),
        ("prices: {gpu: {H100: -2}}", "prices.gpu.H100"),
        ("ledger: ${NO_SUCH_NAME}/x", "needs the environment variable NO_SUCH_NAME"),
        ("currency: USD\ncurrency: EUR", "currency stands twice, in line 1 and in line 2"),
        ("prices:\n  gpu: {a: 1}\n  vcpu: 1\n  gpu: {b: 2}", "gpu stands twice, in line 2 and in"),
        ("prices: {gpu: {H100: 1, H100: 2}}", "the key H100 stands twice"),
        ("identity: {owner: ['path:s3://b/{owner}/{owner}/']}", "{owner} twice"),
        ("identity: {owner: ['path:s3://b/{user}/']}", "{user}, known are experiment"),
        ("identity: {owner: ['path:s3://b/{owner']}", "brace without its partner"),
        ("identity: {owner: ['label:a\\']}", "a key with a backslash"),
        ('identity: {owner: ["tag:a\'b\\"c"]}', "both kinds of quotes"),
        ("a: [", "is not YAML"),
        ("- 1", "must hold keys and values"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(file: Path, text: str, complaint: str) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("RUNBILL_LEDGR", "x", "did you mean RUNBILL_LEDGER"),
        ("RUNBILL_CLUSTERS", "[{", "lists and blocks are JSON"),
        ("RUNBILL_CURRENCY", "", "environment: currency"),
        ("RUNBILL_RULES__RB102__NIHT", "x", "did you mean night"),
    ],
)
def test_a_wrong_variable_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert complaint in str(caught.value)
    assert not file.exists()


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no settings file"):
        load_settings(tmp_path / "none.yaml")


def test_paths_are_relative_to_the_file_and_urls_stay(tmp_path: Path) -> None:
    assert resolve_path("./ledger", tmp_path) == str(tmp_path / "ledger")
    assert resolve_path("/books", tmp_path) == "/books"
    assert resolve_path("s3://bills/x", tmp_path) == "s3://bills/x"


def test_the_digest_speaks_of_what_changes_figures_only() -> None:
    plain = Settings()
    assert plain.digest() == Settings(ledger="elsewhere").digest()
    assert plain.digest() != Settings(timezone="Asia/Shanghai").digest()


def clusters(*blocks: dict[str, object], kind: str = "prometheus") -> list[dict[str, object]]:
    return [{"name": f"c{number}", kind: block} for number, block in enumerate(blocks)]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"clusters": clusters({"url": "http://p:9090"}, {"url": "http://p:9090/"})},
            "clusters c0 and c1 read the same Prometheus",
        ),
        (
            {"clusters": clusters({"export": "./series"}, {"export": "series/"})},
            "clusters c0 and c1 read the same Prometheus",
        ),
        (
            {"clusters": clusters({"context": "a"}, {"context": "a"}, kind="kubernetes")},
            "clusters c0 and c1 read the same Kubernetes objects",
        ),
        (
            {"billing": [{"name": "a", "path": "s3://b/x"}, {"name": "b", "path": "s3://b/x/"}]},
            "the bills a and b read the same path",
        ),
    ],
)
def test_one_place_under_two_names_is_refused(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Settings.model_validate(settings)


@pytest.mark.parametrize(
    "blocks",
    [
        [{"url": "http://p", "cluster_label": "cluster"}] * 2,
        [
            {"url": "http://p", "cluster_label": "cluster", "cluster_value": value}
            for value in ("x", "y")
        ],
        [{"url": "http://p", "tenant": tenant} for tenant in "ab"],
        [{"url": "http://p", "headers": {"X-Scope-OrgID": tenant}} for tenant in "ab"],
        [{"url": "http://p"}, {"url": "http://q"}],
        [{"export": "a"}, {"export": "b"}],
    ],
)
def test_clusters_that_can_be_told_apart_may_share_a_server(
    blocks: list[dict[str, object]],
) -> None:
    assert len(Settings.model_validate({"clusters": clusters(*blocks)}).clusters) == 2


def test_a_block_may_say_again_what_it_takes_from_another(file: Path) -> None:
    file.write_text(
        "prices: &a {gpu: {A: 1}, vcpu: 1}\n"
        "rules: {RB102: {<<: {min_idle_hours: 3, night: '22:00-06:00'}, min_idle_hours: 4}}\n"
    )
    assert load_settings().settings.rules.RB102.min_idle_hours == 4
