"""Lambda's detection of recursive loops: it counts the invocations of a chain that messages make, and stops what comes after 16.

On AWS the count is in the trace header that the SDK sends with each message, and for a message that has gone too far Lambda answers
its event source mapping with a RecursiveInvocationException: the function is not called, the message's receive count grows, and SQS
shows it again until it belongs in the dead letters. How the headers of a batch become one AWS does not say: here the longest
chain of the batch counts. Reads nothing of the app's own count (`chalicelib/usecases/base/message_chains.py`).
AWS Lambda developer guide, "Use Lambda recursive loop detection to prevent infinite loops":
https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from moto.sqs.models import Message

LIMIT = 16
_invocation: ContextVar[int] = ContextVar("invocation_of_its_chain", default=0)
_MARK = "invocation_of_its_chain"


class RecursiveInvocation(Exception):
    """Lambda does not call the function."""


def mark(message: Message) -> None:
    """Note on a message that is being sent which invocation of its chain it will cause. One that only moves keeps its number."""
    if not hasattr(message, _MARK):
        setattr(message, _MARK, _invocation.get() + 1)


def number(message: Message) -> int:
    """Which invocation of its chain a message causes: 1 for what a request, a schedule or a test sent."""
    found: int = getattr(message, _MARK, 1)
    return found


@contextmanager
def invoked(messages: Sequence[Message]) -> Iterator[None]:
    """What is done inside is the function that `messages` start. Raises RecursiveInvocation where their chain is too long."""
    longest = max(map(number, messages), default=1)
    if longest > LIMIT:
        raise RecursiveInvocation(f"invocation {longest} of one chain of messages: Lambda stops it after {LIMIT}")
    token = _invocation.set(longest)
    try:
        yield
    finally:
        _invocation.reset(token)


def invocation() -> int:
    """Which invocation of its chain the function that is at work is; 0 where none is."""
    return _invocation.get()


@contextmanager
def continuing(invocation: int) -> Iterator[None]:
    """What is done inside is done by this invocation of a chain: a function in a process of its own says so with each call."""
    token = _invocation.set(invocation)
    try:
        yield
    finally:
        _invocation.reset(token)
