"""Planning moves: what goes into the transaction of whoever decides that coins shall go from one place of ours to another."""

from __future__ import annotations

from chalicelib.domain.moves import Move, move_command, move_work
from chalicelib.usecases.changes import Change, Open, Save
from chalicelib.usecases.outbox import News


def planned(news: News, move: Move) -> list[Change]:
    """The changes that store a new move (state "planned") with its obligation; `news` gets the command for whoever signs it.

    Two items, and the outbox' two. Planned twice it is a Conflict: the id follows from what it is planned for (`move_id`).
    """
    news.command(move_command(move))
    return [Save(move), Open(move_work(move))]
