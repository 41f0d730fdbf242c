"""RB102: what is a finding, what is clean, what is not known, and what it costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pytest

from ledger.settings import IdleNodes, RuleSettings, Settings
from ledger.window import Window
from rules.rb102_remedy import downtime, in_words
from rules.rule import Answer, Evidence, Finding, Verdict

if TYPE_CHECKING:
    from tests.rules.conftest import World

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def between(first_hour: float, last_hour: float) -> Window:
    """Hours since the window's start."""
    return Window(START + first_hour * HOUR, START + last_hour * HOUR)


def settings(timezone: str = "UTC", **thresholds: object) -> Settings:
    return Settings(
        timezone=timezone, rules=RuleSettings(RB102=IdleNodes.model_validate(thresholds))
    )


def answer(verdict: Verdict) -> tuple[str, str | None]:
    (only,) = verdict.answers
    return only.status, only.reason


def finding(verdict: Verdict) -> Finding:
    (only,) = verdict.findings
    return only


def evidence(found: Finding, metric: str) -> Evidence:
    return next(each for each in found.evidence if each.metric == metric)


def test_busy_nights_and_weekends_are_clean(world: World) -> None:
    verdict = world.node().activity(world.window, 0.7).cost("7").judge()
    assert answer(verdict) == ("clean", None)
    assert verdict.findings == ()


def test_one_busy_sample_ends_the_claim(weekends: World) -> None:
    """A single device at work for one quarter of one Saturday hour."""
    hour = between(5 * 24 + 12, 5 * 24 + 12.25)
    rows = weekends.cost("7").rows["usage"]
    for row in rows:
        if row["slot"] == hour.start and row["device"] == "3":
            row["max"] = 0.02
    found = finding(weekends.judge())
    assert evidence(found, "idle_intervals").value == "Sat 00:00-Sat 12:00, Sat 13:00-Mon 00:00"
    assert evidence(found, "idle_hours").value == "94"


def test_an_hour_idle_in_one_week_only_is_no_waste(world: World) -> None:
    world.node().activity(between(0, 168), 0.0).activity(between(168, 336), 0.5)
    assert answer(world.judge()) == ("clean", None)


def test_daytime_is_never_claimed(world: World) -> None:
    """A node that is empty all the time wastes its nights and weekends here, the days are told."""
    found = finding(world.node().activity(world.window, 0.0).cost("1").judge())
    nights, weekend = 5 * 10, 48
    # Monday 00-08 belongs to Sunday's night, Saturday's night lies in the weekend.
    assert evidence(found, "idle_hours").value == str(2 * (nights + weekend))
    assert evidence(found, "idle_hours_by_day_not_counted").value == str(2 * 5 * 14)
    assert found.money.spent == 196


def test_short_idle_stretches_are_left_alone(world: World) -> None:
    world.node()
    for day in range(14):
        world.activity(between(day * 24, day * 24 + 3), 0.5)
        world.activity(between(day * 24 + 3, day * 24 + 4), 0.0)
        world.activity(between(day * 24 + 4, day * 24 + 24), 0.5)
    assert answer(world.judge()) == ("clean", None)
    assert answer(world.judge(settings(min_idle_hours=1))) == ("finding", None)


def test_nights_are_local(world: World) -> None:
    """Idle 22:00-08:00 in Shanghai is 14:00-24:00 UTC."""
    world.node().cost("1")
    for day in range(14):
        world.activity(between(day * 24, day * 24 + 14), 0.5)
        world.activity(between(day * 24 + 14, day * 24 + 24), 0.0)
    found = finding(world.judge(settings("Asia/Shanghai", weekend="Sun")))
    assert "Mon 22:00-Tue 08:00" in str(evidence(found, "idle_intervals").value)
    assert "Asia/Shanghai" in found.title
    assert "Asia/Shanghai" in " ".join(found.remedy.commands)
    assert found.claims[0].start == START + 14 * HOUR
    assert found.money.spent == 140


def test_half_hour_zones_split_node_hours_exactly(world: World) -> None:
    world.node().activity(world.window, 0.0).cost("0.999999999999")
    found = finding(world.judge(settings("Asia/Kolkata", night="22:00-08:00", weekend="Sun")))
    hours = Decimal(str(evidence(found, "idle_hours").value))
    assert found.money.spent is not None
    assert abs(found.money.spent - hours * Decimal("0.999999999999")) < Decimal("1e-9")


def test_no_samples_are_not_idle(world: World) -> None:
    assert answer(world.node().cost("7").judge()) == ("unknown", "no_series")
    assert world.judge().answers[0].source == "prometheus/c"


def test_what_kept_the_series_from_being_read_is_named(world: World) -> None:
    verdict = world.node().judge(lacking={"prometheus/c": "access_denied"})
    assert answer(verdict) == ("unknown", "access_denied")


def test_holes_are_low_coverage(weekends: World) -> None:
    """Every weekend hour lacks one of its four samples: 75 %."""
    weekends.rows["usage"] = [
        row
        for row in weekends.rows["usage"]
        if row["slot"].minute != 30 or row["slot"].weekday() < 5
    ]
    # The day's fullest hour says what an hour should hold.
    weekends.activity(between(5 * 24 + 9.5, 5 * 24 + 9.75), 0.0)
    weekends.activity(between(6 * 24 + 9.5, 6 * 24 + 9.75), 0.0)
    assert answer(weekends.judge()) == ("unknown", "low_coverage")


def test_a_slot_without_a_row_counts_as_missing(weekends: World) -> None:
    """With 30 samples to a slot, three slots of four are 75 % even if no hour has all four."""
    for row in weekends.rows["usage"]:
        row["samples"] = row["expected"] = 30
    weekends.rows["usage"] = [row for row in weekends.rows["usage"] if row["slot"].minute != 30]
    assert answer(weekends.judge()) == ("unknown", "low_coverage")


def test_a_silent_card_leaves_the_node_unknown(world: World) -> None:
    """Seven of eight cards are idle; of the eighth nothing is known."""
    assert answer(world.node().activity(world.window, 0.0, devices=7).judge()) == (
        "unknown",
        "low_coverage",
    )


def test_two_holders_of_a_card_in_a_slot_are_one_card(world: World) -> None:
    world.node(gpus=1).activity(world.window, 0.0, devices=1, expected=30)
    halves = []
    for row in world.rows["usage"]:
        for uid in ("a", "b"):
            halves.append({**row, "uid": uid, "samples": 15, "expected": 15})
    world.rows["usage"] = halves
    assert answer(world.judge()) == ("finding", None)


def test_tenants_that_share_a_card_do_not_raise_what_is_expected(world: World) -> None:
    """Two tenants at once, each with a full set of samples, and later none: all is covered."""
    world.node(gpus=1).activity(world.window, 0.0, devices=1, expected=30)
    shared = [row for row in world.rows["usage"] if row["slot"].hour < 12]
    for row in shared:
        row["uid"] = "a"
    world.rows["usage"] += [{**row, "uid": "b"} for row in shared]
    assert answer(world.judge()) == ("finding", None)


def test_a_part_of_a_slot_is_not_the_whole(world: World) -> None:
    """A tenant's ten minutes are sampled whole, the rest of each slot is not."""
    world.node(gpus=1).activity(world.window, 0.0, devices=1, expected=30)
    for row in world.rows["usage"]:
        if row["slot"].minute or row["slot"].hour != 12:
            row.update(uid="a", samples=20, expected=20)
    assert answer(world.judge()) == ("unknown", "low_coverage")


def test_instances_of_one_card_do_not_stand_for_others(world: World) -> None:
    world.node(gpus=2)
    for instance in ("1", "2"):
        world.activity(world.window, 0.0, devices=1)
        for row in world.rows["usage"][-14 * 96 :]:
            row["device"] = f"GPU-a/{instance}"
    assert answer(world.judge()) == ("unknown", "low_coverage")


def test_no_pod_held_a_card_needs_a_sampled_view_of_pods(world: World) -> None:
    """An API snapshot does not see the pods that were deleted before it."""
    world.node(source="kubernetes/c").pod("sys", gpus=0, source="kubernetes/c")
    for row in world.rows["workloads"]:
        row["interval_seconds"] = None
    assert answer(world.judge()) == ("unknown", "no_series")
    found = finding(world.node(source="prometheus/c").pod("sys", gpus=0).judge())
    assert "gpu_activity" not in [each.metric for each in found.evidence]
    assert "activity of the cards" in str(evidence(found, "not_checked").value)
    assert found.confidence == "medium"


def test_days_without_any_pod_say_nothing_of_pods(world: World) -> None:
    world.node(source="prometheus/c")
    assert answer(world.judge()) == ("unknown", "no_series")


def test_a_held_card_without_samples_is_not_idle(world: World) -> None:
    world.node(source="prometheus/c").pod("train", gpus=8)
    assert answer(world.judge()) == ("unknown", "no_series")


def test_pods_that_hold_quiet_cards_do_not_hide_the_waste(weekends: World) -> None:
    found = finding(
        weekends.pod().cost("7", experiment="grpo-a", owner="lin", target="workload").judge()
    )
    assert (found.experiment, found.owner) == ("grpo-a", "lin")
    assert evidence(found, "gpu_pods_held_hours").value == "96"


@pytest.mark.parametrize("gpus", [0, None])
def test_capacity_unknown(world: World, gpus: int | None) -> None:
    assert answer(world.node(gpus=gpus).pod(gpus=2).judge()) == ("unknown", "capacity_unknown")


def test_nodes_without_cards_and_nodes_that_are_gone_are_skipped(weekends: World) -> None:
    weekends.node("cpu-1", 0).node("old", 8, between(0, 100))
    verdict = weekends.judge()
    assert verdict.skipped == {"node/c/cpu-1": "no_gpus", "node/c/old": "gone"}
    assert [each.resource for each in verdict.answers] == ["node/c/n1"]


def test_a_node_that_only_costs_speak_of_is_unknown(world: World) -> None:
    verdict = world.cost("7").judge()
    assert verdict.answers == (Answer("node/c/n1", "unknown", "no_series", "prometheus/c"),)


def test_an_empty_ledger_is_unknown_not_clean(world: World) -> None:
    assert world.judge().answers == (Answer(None, "unknown", "no_series"),)


def test_a_young_node_has_a_short_history(world: World) -> None:
    late = between(7 * 24, 336)
    assert answer(world.node(span=late).activity(late, 0.0).judge()) == ("unknown", "short_history")


def test_seven_days_are_a_short_history(world: World) -> None:
    world.window = between(0, 168)
    assert answer(world.node().activity(world.window, 0.0).judge()) == ("unknown", "short_history")


def test_a_group_that_scales_down_never_appears(world: World) -> None:
    """Up 08:00-22:00 from Monday to Friday; another node shows that the cluster was seen."""
    world.node("other").activity(world.window, 0.5, "other")
    for day in range(14):
        if day % 7 < 5:
            span = between(day * 24 + 8, day * 24 + 22)
            world.node("n1", 8, span, created=START - 30 * DAY).activity(span, 0.0).cost(
                "7", span=span
            )
    verdict = world.judge()
    assert {each.status for each in verdict.answers} == {"clean"}


def test_a_node_that_is_billed_though_nothing_saw_it_is_not_off(world: World) -> None:
    world.node("other").activity(world.window, 0.5, "other")
    for day in range(14):
        span = between(day * 24 + 8, day * 24 + 22)
        world.node("n1", 8, span, created=START - 30 * DAY).activity(span, 0.5)
    world.cost("7")
    outcomes = {each.resource: (each.status, each.reason) for each in world.judge().answers}
    assert outcomes["node/c/n1"] == ("unknown", "low_coverage")


def test_a_node_that_is_up_but_not_billed_at_night_costs_nothing(world: World) -> None:
    """Stopped machines stay registered; the bill has no line of theirs."""
    world.node().activity(world.window, 0.0)
    for day in range(14):
        world.cost("7", span=between(day * 24 + 8, day * 24 + 22))
    verdict = world.judge(settings(weekend="Sat-Sun", night="22:00-08:00"))
    found = finding(verdict)
    assert evidence(found, "idle_intervals").value == "Sat 08:00-Sat 22:00, Sun 08:00-Sun 22:00"


def test_without_a_price_the_finding_stands_without_money(weekends: World) -> None:
    money = finding(weekends.judge()).money
    assert (money.spent, money.saving_per_month, money.reason) == (None, None, "no_price")


def test_an_unknown_cost_is_not_zero(weekends: World) -> None:
    money = finding(weekends.cost(None).judge()).money
    assert (money.spent, money.saving_per_month, money.reason) == (None, None, "no_price")


def test_currencies_are_never_added(weekends: World) -> None:
    weekends.cost("7").cost("1", BillingCurrency="EUR", x_LineId="eur")
    assert finding(weekends.judge()).money.reason == "price_ambiguous"


def test_an_estimate_never_stands_beside_a_bill(weekends: World) -> None:
    weekends.cost("7").cost("100", x_Basis="estimated", x_Source="estimate")
    money = finding(weekends.judge()).money
    assert (money.basis, money.spent) == ("billed", Decimal(672))


def test_estimates_are_marked(weekends: World) -> None:
    money = finding(weekends.cost("7", x_Basis="estimated").judge()).money
    assert (money.basis, money.spent, money.saving_per_month) == (
        "estimated",
        Decimal(672),
        Decimal(1440),
    )


def test_a_lagging_bill_does_not_change_the_saving(weekends: World) -> None:
    """Two days late: the second weekend is not billed yet."""
    weekends.cost("7", span=between(0, 12 * 24))
    money = finding(weekends.judge()).money
    assert (money.spent, money.saving_per_month) == (Decimal(336), Decimal(1440))


def test_a_day_that_is_billed_in_part_does_not_count_as_a_day(weekends: World) -> None:
    weekends.cost("7", span=between(0, 12 * 24 + 6))
    money = finding(weekends.judge()).money
    assert (money.spent, money.saving_per_month) == (Decimal(336 + 42), Decimal(1440))


def test_all_lines_of_the_node_hour_count_exactly(weekends: World) -> None:
    weekends.cost("6.999999999999").cost("0.000000000001", x_LineId="disk", resource="cpu")
    assert finding(weekends.judge()).money.spent == 672


def test_credits_count_with_their_sign(weekends: World) -> None:
    weekends.cost("7").cost("-1.5", x_LineId="credit")
    assert finding(weekends.judge()).money.spent == Decimal("5.5") * 96


def test_commitments_are_marked(weekends: World) -> None:
    found = finding(weekends.cost("7").commitment().judge())
    assert evidence(found, "realisable").value == "after_commitment"
    assert "96 of 96 hours" in found.money.method
    assert found.money.saving_per_month == 1440


def test_holidays_are_spent_but_not_projected(weekends: World) -> None:
    """Wednesday 11 March is a holiday on which the node was idle from 8 to 22."""
    hours = between(9 * 24 + 8, 9 * 24 + 22)
    for row in weekends.cost("7").rows["usage"]:
        if hours.start <= row["slot"] < hours.end:
            row["max"] = 0.0
    found = finding(weekends.judge(settings(holidays=["2026-03-11"])))
    assert found.money.spent == 672 + 14 * 7
    assert found.money.saving_per_month == 1440


def test_activity_in_another_unit_is_not_read(weekends: World) -> None:
    for row in weekends.rows["usage"]:
        row["max"] *= 100
    assert answer(weekends.judge()) == ("unknown", "unit_mismatch")


def test_not_a_number_is_no_sample_of_idleness(world: World) -> None:
    assert answer(world.node().activity(world.window, float("nan")).judge())[0] == "unknown"


def test_a_node_that_never_works_is_to_go_not_to_sleep(world: World) -> None:
    found = finding(
        world.node(labels='{"eks.amazonaws.com/nodegroup":"h100"}')
        .cost("7")
        .activity(world.window, 0.0)
        .judge()
    )
    assert "no work at any hour" in found.title
    assert "Remove the node n1 or let node pool h100 scale to zero" in found.remedy.summary
    assert "downscaler" not in "".join(found.remedy.commands)
    assert "minSize=0" in "".join(found.remedy.commands)


def test_medium_confidence_says_why(world: World) -> None:
    found = finding(world.node(source="prometheus/c").pod("sys", gpus=0).judge())
    assert found.confidence == "medium"
    assert evidence(found, "why_confidence_is_medium").value == (
        "in 196 of 196 idle hours not every card has samples of its activity, only no pod held one"
    )
    other = finding(world.activity(world.window, 0.0).judge())
    assert other.confidence == "high"
    assert "why_confidence_is_medium" not in [each.metric for each in other.evidence]


@pytest.mark.parametrize(
    ("bins", "words", "schedule"),
    [
        ({4, 5}, "Mon 04:00-06:00", "Mon-Mon 04:00-06:00 UTC"),
        (
            {*range(24, 30), *range(48, 54), *range(120, 126)},
            "Tue-Wed, Sat 00:00-06:00",
            "Tue-Wed 00:00-06:00 UTC, Sat-Sat 00:00-06:00 UTC",
        ),
        ({4, 5, *range(120, 168)}, "Mon 04:00-06:00; Sat-Sun all day", None),
    ],
)
def test_hours_are_told_to_readers_and_to_the_downscaler(
    bins: set[int], words: str, schedule: str | None
) -> None:
    assert in_words(bins) == words
    assert schedule in (None, downtime(bins, "UTC"))


def test_the_remedy_is_a_local_schedule_and_knows_the_pool(world: World) -> None:
    world.node(labels='{"karpenter.sh/nodepool":"h100; rm -rf /"}').cost("7")
    world.activity(between(0, 12), 0.0).activity(between(12, 13), 0.5)
    world.activity(between(13, 336), 0.0)
    remedy = finding(world.judge(settings("Europe/Berlin"))).remedy
    text = "\n".join(remedy.commands)
    assert (
        "Mon-Fri 00:00-08:00 Europe/Berlin, Mon-Fri 22:00-24:00 Europe/Berlin, "
        "Sat-Sun 00:00-24:00 Europe/Berlin"
    ) in text
    assert "nodepool 'h100; rm -rf /' --type merge" in text
    assert "heckpoint" in remedy.summary


def test_dst_fortnight_keeps_the_night(world: World) -> None:
    """Two weeks around the change in New York: the skipped hour is neither lost nor invented."""
    world.window = Window(START, START + 14 * DAY)
    found = finding(
        world.node()
        .activity(world.window, 0.0)
        .cost("1")
        .judge(settings("America/New_York", weekend="Sat"))
    )
    # 14 nights of 10 hours less the skipped one (the window's edge cuts one in two), and the
    # Saturdays between their nights.
    assert found.money.spent == Decimal(str(evidence(found, "idle_hours").value))
    assert Decimal(str(evidence(found, "idle_hours").value)) == 13 * 10 + 10 - 1 + 2 * 14


def test_evenly_shuffled_rows_give_the_same_answer(weekends: World) -> None:
    frames = weekends.cost("7").pod().frames()
    shuffled = {
        name: frame.sample(fraction=1, shuffle=True, seed=7) for name, frame in frames.items()
    }
    assert weekends.judge(frames=shuffled) == weekends.judge(frames=frames)


def test_nothing_is_read_that_was_not_declared(weekends: World) -> None:
    from ledger.schema import RESOURCES
    from rules.rule import RuleTables

    with pytest.raises(KeyError):
        RuleTables({"nodes": pl.LazyFrame()})[RESOURCES]
