"""Idempotency-Key: the answer is stored in the transaction that creates the record, so that one key creates one record at most.

The same key with the same request within 24 hours is answered with the stored bytes; with another request it is refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from chalicelib.api.rendering import Answer
from chalicelib.domain.errors import BusinessRule, InvalidParameter
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base import activity
from chalicelib.usecases.base.idempotency import KEPT_MS, StoredAnswer
from chalicelib.usecases.ports.changes import Change, Conflict, Save

if TYPE_CHECKING:
    from chalicelib.domain.ids import TenantId
    from chalicelib.usecases.base.creation import Creation
    from chalicelib.wiring import Services

HEADER = "Idempotency-Key"
MAX_LENGTH = 255
_PACKED_FROM = 64 * 1024
"""Answers of more bytes than this are stored compressed. The largest, a batch of 100 withdrawals that 20 signers have to sign, has
500 KB, most of them the same ones again and again: a tenth of that is left."""


class KeyedRequest(Protocol):
    """The part of a request that this module needs, as `api.context.Ctx` has it."""

    @property
    def services(self) -> Services: ...

    @property
    def tenant(self) -> TenantId: ...

    @property
    def now_ms(self) -> int: ...

    @property
    def plain_key(self) -> str: ...

    @property
    def idempotency_key(self) -> str | None: ...

    @property
    def request_hash(self) -> str: ...

    @property
    def expired_version(self) -> int: ...


class Replay(Exception):
    """Another request with the same key came first: `answer` is its answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("answered before")
        self.answer = answer


def key_from(values: Sequence[str]) -> str | None:
    """The key of a request's headers, None when there is none. Raises InvalidParameter for an empty, long or ambiguous one."""
    if not values:
        return None
    key = values[0].strip()
    if len(set(values)) > 1:
        raise InvalidParameter.one(HEADER, None, "must be sent only once")
    if not 1 <= len(key) <= MAX_LENGTH or not (key.isascii() and key.isprintable()):
        raise InvalidParameter.one(HEADER, key[:MAX_LENGTH], f"must have 1 to {MAX_LENGTH} printable ASCII characters")
    return key


def hash_of(method: str, path: str, query: Mapping[str, Sequence[str]], body: bytes) -> str:
    """The hash that identifies a request: method, path without version, query (in any order) and the bytes of the body."""
    parameters = json.dumps(sorted((name, list(values)) for name, values in query.items()))
    return hashlib.sha256(b"\n".join((method.encode(), path.encode(), parameters.encode(), body))).hexdigest()


def stored(ctx: KeyedRequest) -> StoredAnswer | None:
    """The stored answer of the request's key, expired or not."""
    return ctx.services.store.get(StoredAnswer, tenant=ctx.tenant, key=ctx.idempotency_key or "")


def replay(ctx: KeyedRequest, record: StoredAnswer | None) -> Answer | None:
    """The stored answer, unless it has expired. Raises BusinessRule when the key was used with another request."""
    if record is None or record.expires_at <= ctx.now_ms:
        return None
    if record.request_hash != ctx.request_hash:
        raise BusinessRule(HEADER, "this key was used with another request in the last 24 hours")
    text: str | None = zlib.decompress(base64.b64decode(record.body)).decode() if record.packed else record.body
    if record.sealed:
        from chalicelib.custody import sealed_answers

        text = sealed_answers.unseal(ctx.plain_key, _context(ctx), record.body)
        if text is None:
            raise BusinessRule(HEADER, "this key was used by another API key, and its answer shows a secret")
    return Answer(None, status=record.status, text=text, headers={"Idempotency-Replayed": "true"})


def _context(ctx: KeyedRequest) -> str:
    """What a sealed answer belongs to."""
    return f"{ctx.tenant}\x1f{ctx.idempotency_key}\x1f{ctx.request_hash}"


_IDS = ("id", "key_id", "batch_id", "coin")
"""Where an answer names what was made."""


def _note(answer: Answer) -> None:
    """Say in the activity record what the request makes."""
    if not isinstance(answer.data, dict):
        return
    made = next((answer.data[name] for name in _IDS if name in answer.data), None)
    if isinstance(made, str):
        activity.made(made)


class Once:
    """Renders what is created, and stores the answer with it where the request has an Idempotency-Key."""

    def __init__(self, ctx: KeyedRequest, render: Callable[[Any], Answer], *, secret: bool = False) -> None:
        self._ctx = ctx
        self._secret = secret
        self._render = render

    def create(self, creation: Creation[Any]) -> Answer:
        """Commit `creation` and the answer about it in one transaction, and do what follows; the answer.

        Each try is rendered anew. Raises what the creation raises; Replay where it is tried again, and it was another request with
        the same key that was first.
        """
        from chalicelib.usecases.base.retries import until_settled

        answers: list[Answer] = []

        def attempt() -> Any:
            prepared = creation.prepare()
            answers.append(self._render(prepared.made))
            _note(answers[-1])
            made = creation.commit(prepared, self._stored(answers[-1], again=len(answers) > 1))
            if made is not prepared.made:  # an earlier try was committed after all, and it is what is stored
                answers.append(self._render(made))
            return made

        creation.after(until_settled(attempt, creation.tries))
        return answers[-1]

    def _stored(self, answer: Answer, *, again: bool) -> list[Change]:
        """The change that stores `answer`, for the transaction that creates what it tells of. `again`: this is not the first try.

        Raises Replay where it was another request with the same key that was first.
        """
        ctx = self._ctx
        if ctx.idempotency_key is None:
            return []
        before = stored(ctx) if again else None
        told = replay(ctx, before)
        if told is not None:
            raise Replay(told)
        # An expired answer that was there when the request came may have been removed since.
        version = version_after(before) if again else ctx.expired_version + 1
        expires_at = ctx.now_ms + KEPT_MS
        assert answer.text is not None and answer.status is not None  # noqa: S101
        text = answer.text
        body, packed = text, False
        if self._secret:
            from chalicelib.custody import sealed_answers

            body = sealed_answers.seal(ctx.plain_key, _context(ctx), text)
        elif len(text.encode()) > _PACKED_FROM:
            body, packed = base64.b64encode(zlib.compress(text.encode())).decode("ascii"), True
        row = StoredAnswer(
            tenant=ctx.tenant,
            key=ctx.idempotency_key,
            request_hash=ctx.request_hash,
            status=answer.status,
            body=body,
            expires_at=expires_at,
            ttl=expires_at // 1000,
            sealed=self._secret,
            packed=packed,
            version=version,
        )
        return [Save(row, anew=True)]

    def done(self, record: Any) -> Answer:
        """Store the answer by itself, for a creation outside our transactions, after it."""
        answer = self._render(record)
        changes = self._stored(answer, again=False)
        _note(answer)
        if not changes:
            activity.alone(self._ctx.services.store)
        else:
            try:
                self._ctx.services.store.commit(changes)
            except Conflict:
                told = replay(self._ctx, stored(self._ctx))
                if told is None:
                    raise
                raise Replay(told) from None
        return answer
