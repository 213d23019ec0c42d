"""What the local AWS remembers is what it would have worked out."""

from __future__ import annotations

import pytest
from moto.dynamodb.comparisons import ConditionExpressionParser

from infra.local.repairs.speed import repair_speed

NAMES = {"#a": "amount", "#v": "version"}


@pytest.mark.parametrize(
    "condition", ["attribute_not_exists(pk)", "#v = :v AND (attribute_exists(pk) OR NOT #a BETWEEN :x AND :y)", "size(#a) >= :x"]
)
def test_the_same_condition_with_other_values_is_another(condition: str) -> None:
    def parsed(value: str) -> str:
        values = {name: {"N": value} for name in (":v", ":x", ":y")}
        return repr(ConditionExpressionParser(condition, NAMES, values).parse())

    repair_speed()
    first, second, again = parsed("1"), parsed("2"), parsed("1")
    assert first == again
    assert ("2" in second) == (":" in condition)


def test_nonsense_is_refused_every_time() -> None:
    repair_speed()
    for _ in range(2):
        with pytest.raises(ValueError, match="Cannot parse"):
            ConditionExpressionParser("a = !", {}, {}).parse()
