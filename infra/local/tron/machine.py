"""A little of Tron's virtual machine: enough to run creation code that reads balances.

What `triggerconstantcontract` does without a contract: java-tron's Wallet.callConstantContract runs the code as that of a new
contract, and answers what it returns. Opcodes and their meaning are Ethereum's (yellow paper, appendix H); BALANCE and calls know
an address by its last 20 bytes. Any other opcode ends it, as an invalid one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from infra.local.tron import tokens
from infra.local.tron.state import State

MOST_ENERGY = 100_000_000
"""vm.maxEnergyLimitForConstant by default."""
_STEP, _BALANCE, _CALL = 3, 20, 40
"""Energy of an opcode: EnergyCost of java-tron, where most of these cost 3 or less."""
_WORD = 1 << 256


class _Ended(Exception):
    def __init__(self, returned: bytes = b"", reverted: bool = False) -> None:
        super().__init__("ended")
        self.returned, self.reverted = returned, reverted


@dataclass
class _Machine:
    state: State
    owner: bytes
    code: bytes
    stack: list[int] = field(default_factory=list)
    memory: bytearray = field(default_factory=bytearray)
    answered: bytes = b""
    energy: int = 0
    at: int = 0

    def run(self) -> tokens.Called:
        steps: dict[int, Callable[[], None]] = {
            0x01: self._binary(lambda a, b: (a + b) % _WORD), 0x03: self._binary(lambda a, b: (a - b) % _WORD),
            0x10: self._binary(lambda a, b: int(a < b)), 0x15: lambda: self.stack.append(int(not self.stack.pop())),
            0x16: self._binary(lambda a, b: a & b), 0x1B: self._binary(lambda a, b: (b << a) % _WORD if a < 256 else 0),
            0x31: self._balance, 0x38: lambda: self.stack.append(len(self.code)), 0x39: self._copy_code,
            0x3D: lambda: self.stack.append(len(self.answered)), 0x50: lambda: self._drop(1),
            0x51: lambda: self.stack.append(int.from_bytes(self._read(self.stack.pop(), 32))), 0x52: self._store,
            0x56: lambda: self._jump(self.stack.pop()), 0x57: self._jump_if,
            0x5A: lambda: self.stack.append(MOST_ENERGY - self.energy),
            0x5B: lambda: None, 0xF3: lambda: self._end(False), 0xFA: self._call, 0xFD: lambda: self._end(True),
        }  # fmt: skip
        try:
            while self.at < len(self.code):
                self._step(self.code[self.at], steps)
        except _Ended as end:
            return tokens.Called(self.energy, end.returned, reverted=end.reverted)
        except (IndexError, KeyError):
            return tokens.Called(MOST_ENERGY, reverted=True)
        return tokens.Called(self.energy)

    def _step(self, opcode: int, steps: dict[int, Callable[[], None]]) -> None:
        self.at += 1
        self.energy += _STEP
        if 0x60 <= opcode <= 0x7F:
            size = opcode - 0x5F
            self.stack.append(int.from_bytes(self.code[self.at : self.at + size]))
            self.at += size
        elif 0x80 <= opcode <= 0x8F:
            self.stack.append(self.stack[-(opcode - 0x7F)])
        else:
            steps[opcode]()
        if self.energy > MOST_ENERGY:
            raise _Ended(reverted=True)

    def _binary(self, of: Callable[[int, int], int]) -> Callable[[], None]:
        return lambda: self.stack.append(of(self.stack.pop(), self.stack.pop()))

    def _drop(self, count: int) -> None:
        del self.stack[-count:]

    def _read(self, start: int, size: int) -> bytes:
        self.memory.extend(bytes(max(0, start + size - len(self.memory))))
        return bytes(self.memory[start : start + size])

    def _write(self, start: int, part: bytes) -> None:
        self._read(start, len(part))
        self.memory[start : start + len(part)] = part

    def _store(self) -> None:
        start, value = self.stack.pop(), self.stack.pop()
        self._write(start, value.to_bytes(32))

    def _copy_code(self) -> None:
        to, start, size = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self._write(to, self.code[start : start + size].ljust(size, b"\0"))

    def _balance(self) -> None:
        self.energy += _BALANCE
        found = self.state.account(b"\x41" + self.stack.pop().to_bytes(32)[-20:])
        self.stack.append(found.balance if found else 0)

    def _jump(self, to: int) -> None:
        if self.code[to] != 0x5B:
            raise KeyError(to)
        self.at = to

    def _jump_if(self) -> None:
        to, wanted = self.stack.pop(), self.stack.pop()
        if wanted:
            self._jump(to)

    def _call(self) -> None:
        _, to, start, size, place, room = (self.stack.pop() for _ in range(6))
        contract = self.state.get(("contract", b"\x41" + to.to_bytes(32)[-20:]))
        called = tokens.Called(0) if contract is None else tokens.call(self.state, contract, self.owner, self._read(start, size), 0)
        self.energy += _CALL + called.energy
        self.answered = called.returned
        self._write(place, called.returned[:room])
        self.stack.append(int(not called.reverted))

    def _end(self, reverted: bool) -> None:
        start, size = self.stack.pop(), self.stack.pop()
        raise _Ended(self._read(start, size), reverted)


def created(state: State, owner: bytes, code: bytes) -> tokens.Called:
    """What creation code by `owner` returns, and the energy that it takes. It changes nothing: the caller rolls back."""
    return _Machine(state, owner, code).run()
