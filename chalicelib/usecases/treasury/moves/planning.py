"""Plans moves: the changes that the deciding use case adds to its own transaction."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.treasury.moves import Move, move_command, move_work
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Change, Close, Open, Save


def planned(news: News, move: Move) -> list[Change]:
    """The changes that store a new move (state "planned") with its obligation; `news` gets the command for its signature.

    Two items, and an outbox row. Planned twice it is a Conflict: the id follows from what it is planned for (`move_id`).
    """
    news.command(move_command(move))
    return [Save(move), Open(move_work(move))]


def dropped(move: Move, reason: str, now: int) -> list[Change]:
    """The changes that take back a move for which nothing is allotted yet (state "planned"). Two items; a Conflict where somebody
    has started it meanwhile."""
    if move.state != "planned":
        raise ValueError(f"move {move.id} is {move.state}: it can not be taken back")
    after = replace(next_version(move), state="dropped", reason=reason[:300], updated_at=now)
    return [Save(after), Close(move_work(move))]
