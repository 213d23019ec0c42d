"""The one path of every request: authorise, parse, call the handler, shape the answer. Every exception ends here.

Chalice would answer in a shape of its own, so its view functions and error classes see nothing of errors.
"""

from __future__ import annotations

import logging
import os
import re
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from chalice.app import Request, Response

from chalicelib.api import auth, body, errors, fault_metric, idempotency, resources
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.idempotency import Replay
from chalicelib.api.pages import Asked, is_page, refusal
from chalicelib.api.rendering import to_json
from chalicelib.api.routes import ROUTES, Route
from chalicelib.domain.errors import FieldProblem, InvalidParameter, NotFound, ServiceError
from chalicelib.usecases.base import activity
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import TooNew

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Catalogue
    from chalicelib.wiring import Services

log = logging.getLogger(__name__)

_request: ContextVar[Request] = ContextVar("request")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_API_ID, _STAGE = re.compile(r"[a-z0-9]{10}", re.ASCII), re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_KEY = re.compile(r"sk_(live|test)_[A-Za-z0-9]+", re.ASCII)
_FAMILY_OF: dict[str, errors.Family] = {}
_JSON = {"Content-Type": "application/json"}


def middleware(request: Request, get_response: Callable[[Request], Response]) -> Response:
    """Chalice's HTTP middleware: the request by thread, our shape also where Chalice itself refuses, and every 500 counted."""
    token = _request.set(request)
    try:
        response = _answered(request, get_response)
        if response.status_code >= 500:
            fault_metric.count(str(request.context.get("resourcePath") or ""), request_id_of(request))
        return response
    finally:
        _request.reset(token)


def _answered(request: Request, get_response: Callable[[Request], Response]) -> Response:
    try:
        response = get_response(request)
    except Exception as error:  # noqa: BLE001 - the last fence: what is behind it is the caller
        return _refused(request, _unexpected(error, request_id_of(request), request.path))
    if response.status_code == 405:
        return _refused(request, NotFound(f"There is no {request.method} here", {"path": request.path}))
    if response.status_code >= 500 and not isinstance(response.body, str):
        return _refused(request, errors.INTERNAL)  # Chalice's own, which it has logged: `handle` answers in text
    return response


def view(route: Route) -> Callable[..., Response]:
    """The function that Chalice calls for `route`."""

    def answer(**path: str) -> Response:
        return handle(route, _request.get(), path)

    answer.__name__ = f"{route.method.lower()}_{route.handler.__name__}"
    return answer


def request_id_of(request: Request) -> str:
    """The gateway's id of the request; one of our own where it has none."""
    given = str(request.context.get("requestId") or "")
    return given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


def gateway_url(context: Mapping[str, Any], region: str) -> str | None:
    """The beginning of the API's URLs at the gateway's own domain, from the context that the gateway gives a request.

    It is built from the API's id, which no caller can choose; `domainName` is the domain that the caller used.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/how-to-call-api.html
    """
    api, stage = str(context.get("apiId") or ""), str(context.get("stage") or "")
    if not _API_ID.fullmatch(api) or not _STAGE.fullmatch(stage) or not region:
        return None
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://{api}.execute-api.{region}.{suffix}/{stage}"


def handle(route: Route, request: Request, path: Mapping[str, str]) -> Response:
    """Answer one request. Never raises."""
    from chalicelib.wiring import services

    request_id = request_id_of(request)
    headers = {"X-Request-Id": request_id, **_JSON}
    now_ms = 0
    ctx: Ctx | None = None
    try:
        wired = services()
        now_ms = wired.clock.now_ms()
        ctx = Ctx(wired, route, request_id, auth.source_ip(request), now_ms, path, headers=headers)
        ctx.address, ctx.domain = str(request.context.get("path") or ""), str(request.context.get("domainName") or "")
        ctx.accepts = ",".join(auth.header_values(request, "accept"))
        ctx.accept_language = _accept_language(request)
        ctx.gateway_url = gateway_url(request.context, os.environ.get("AWS_REGION", ""))
        answer = _answer(ctx, request, wired, headers)
        headers.update(_weighed(ctx))
        headers.update(answer.headers)
        text = ctx.text(answer) if answer.text is None else answer.text
        return Response(text, headers={**headers}, status_code=answer.status or route.status)
    except ServiceError as error:
        known = error if error.code in errors.STATUS else _unexpected(error, request_id, route.path)
    except TooNew as error:
        _unexpected(error, request_id, route.path)
        known = errors.TOO_NEW
        headers["Retry-After"] = str(errors.TOO_NEW_SECONDS)
    except Exception as error:  # noqa: BLE001 - the caller gets a 500 that says nothing, the log gets everything
        known = _unexpected(error, request_id, route.path)
    headers.update(_weighed(ctx))
    if isinstance(known, errors.RateLimitExceeded):
        headers.update(auth.refusal_headers(known.usage, now_ms))
    if is_page(route.path, route.media, route.form and _sends_form(request)):
        asked = Asked(route.path, str(request.context.get("path") or ""), _accept_language(request))
        text, of_page = refusal(known, asked, request_id)
        headers.update(of_page)
    else:
        text = to_json(errors.shaped(known, route.family, now_ms, request_id))
    status = errors.STATUS[known.code]
    # It has this frame in its traceback: with the body it would stay, however large, until Python looks for garbage, which counts
    # objects and no bytes (`app.py`).
    del known
    return Response(text, headers={**headers}, status_code=status)


def _accept_language(request: Request) -> str:
    return ",".join(auth.header_values(request, "accept-language"))


def _sends_form(request: Request) -> bool:
    """Whether a browser's form was sent."""
    kinds = auth.header_values(request, "content-type")
    return body.is_form(kinds[-1] if kinds else None)


def _weighed(ctx: Ctx | None) -> dict[str, str]:
    """How the caller's windows stand after a batch, which counts as many requests."""
    return {} if ctx is None or ctx.usage is None else auth.usage_headers(ctx.usage)


def _answer(ctx: Ctx, request: Request, wired: Services, headers: dict[str, str]) -> Answer:
    route = ctx.route
    if route.level == "public":
        auth.count_keyless(ctx.source_ip, wired.source_limits, ctx.now_ms, headers)
    else:
        ctx.caller, ctx.usage = auth.let_in(request, route, wired.gate, wired.source_limits, ctx.now_ms, headers)
    if route.method != "GET" and wired.settings.stage == "demo":
        wired.demo_resets.demand_rest()
    if any(body.has_bad_character(value) for value in ctx.path.values()):
        raise NotFound("There is nothing of that name", {"path": route.path})
    arguments = _arguments(ctx, request)
    if ctx.idempotency_key is not None:
        ctx.plain_key = auth.key_of(request)
        before = idempotency.stored(ctx)
        told = idempotency.replay(ctx, before)
        if told is not None:
            return told
        ctx.expired_version = 0 if before is None else before.version
    try:
        with _as_caller(ctx, arguments):
            answer: Answer = route.handler(ctx, *arguments)
    except Replay as replay:
        return replay.answer
    except (ServiceError, Conflict):
        # The same request may have been done in the meantime by its twin, which is why it can not be done any more.
        told = idempotency.replay(ctx, idempotency.stored(ctx)) if ctx.idempotency_key is not None else None
        if told is None:
            raise
        return told
    return answer


@contextmanager
def _as_caller(ctx: Ctx, arguments: Sequence[Any]) -> Iterator[None]:
    """What a handler does is done in the realm of the caller's key, and a change in that key's name."""
    if ctx.caller is None:
        yield
        return
    with in_realm(ctx.realm):
        if ctx.route.method == "GET":
            yield
            return
        from chalicelib.api.activity_record import record_of

        with activity.recording(record_of(ctx, arguments)):
            yield


def _arguments(ctx: Ctx, request: Request) -> list[Any]:
    """Body and query as the route's models; everything that is wrong with either, at once."""
    route = ctx.route
    problems: list[FieldProblem] = []
    arguments: list[Any] = []
    catalogue = None if route.level == "public" else ctx.catalogue
    # Also where the route reads none: what nobody looks at must not be sent in the belief that it counts.
    raw = request.raw_body if route.method != "GET" else b""
    raw = raw.encode() if isinstance(raw, str) else raw
    query, wrong_query = _query_of(route, request, catalogue)
    joined = query.model_dump(exclude_none=True) if query is not None and query.for_body else {}
    if route.creates:
        try:
            ctx.idempotency_key = idempotency.key_from(auth.header_values(request, idempotency.HEADER.lower()))
        except InvalidParameter as error:
            problems += error.problems
        path = route.path.format_map(ctx.path)
        ctx.request_hash = idempotency.hash_of(route.method, path, _parameters(request), raw)
    try:
        content_type = auth.header_values(request, "content-type")
        kind = content_type[-1] if content_type else None
        ctx.form = route.form and _sends_form(request)
        sent = body.parse_form(raw) if ctx.form else body.parse(raw, kind)
    except InvalidParameter as error:
        problems += error.problems
    else:
        if route.body is None:
            problems += body.none_known(sent)
        else:
            from chalicelib.api.fields import slug
            from chalicelib.api.problems import validated

            twice = [name for name, value in joined.items() if slug(sent.get(name)) not in (None, value)]
            problems += [FieldProblem(name, joined[name], ("must be the same in the query and in the body",)) for name in twice]
            sent |= {name: value for name, value in joined.items() if name not in twice}
            parsed, wrong = validated(route.body, sent, catalogue)
            problems += [problem for problem in wrong if problem.field not in twice]
            if ctx.caller is not None:
                named = frozenset(problem.field.split(".")[0] for problem in wrong)
                problems += cast(Any, route.body).problems_of(ctx, sent, named)
            arguments.append(parsed)
    problems += wrong_query
    if query is not None and not query.for_body:
        arguments.append(query)
    if problems:
        raise InvalidParameter(problems)
    return arguments


def _query_of(route: Route, request: Request, catalogue: Catalogue | None) -> tuple[Any, list[FieldProblem]]:
    """The query string as the route's model, None where it has none or is wrong, and what is wrong with it."""
    if route.query is None:
        return None, []
    # pydantic is half of a cold start's imports: a request that has nothing to validate does not wait for it.
    from chalicelib.api.problems import validated

    sent = _query(request)
    bad = {name for name, value in sent.items() if any(body.has_bad_character(text) for text in (name, *value))}
    problems = [FieldProblem(name[:100], None, (body.NO_BAD_CHARACTER,)) for name in sorted(bad)[: body.MAX_PROBLEMS]]
    parsed, wrong = validated(route.query, {name: value for name, value in sent.items() if name not in bad}, catalogue)
    return parsed, [*problems, *(problem for problem in wrong if problem.field not in bad)]


def _query(request: Request) -> dict[str, Any]:
    """Text where a name is there once, a list where it is there several times. `status[]` is `status`."""
    values: dict[str, list[str]] = {}
    for name, several in _parameters(request).items():
        values.setdefault(name.removesuffix("[]"), []).extend(several)
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def _parameters(request: Request) -> Mapping[str, list[str]]:
    """The query as it was sent."""
    return request.to_original_event().get("multiValueQueryStringParameters") or {}


def _unexpected(error: Exception, request_id: str, path: str) -> ServiceError:
    """Log what happened, without anything that looks like a key, and what to say instead."""
    text = "".join(traceback.format_exception(error))
    log.error("request %s to %s failed\n%s", request_id, path, _KEY.sub(r"sk_\1_...", text))
    return errors.INTERNAL


def _refused(request: Request, error: ServiceError) -> Response:
    """An answer where no route's own code has run: in the shape of the path's family."""
    import time

    family = _family_of(request.path)
    request_id = request_id_of(request)
    text = to_json(errors.shaped(error, family, time.time_ns() // 1_000_000, request_id))
    return Response(text, headers={"X-Request-Id": request_id, **_JSON}, status_code=errors.STATUS[error.code])


def _family_of(path: str) -> errors.Family:
    """The shape of errors at a path; the object where no one can tell, since a part of the API can not be imported."""
    try:
        if not _FAMILY_OF:
            resources.load()
            _FAMILY_OF.update({route.path: route.family for route in ROUTES})
    except Exception:
        log.exception("the routes could not be loaded")
    return _FAMILY_OF.get(path.removeprefix("/v1"), "object")
