"""Strangers' PNG images, rewritten so that nothing but an image is left.

Pure. `rewritten` reads a PNG chunk by chunk, checks every length, checksum and size, inflates no more than the image's own size
allows, and writes an image of its own: header, palette, transparency, pixels, end. What else a file may carry is dropped: text,
time, colour profiles, animation, chunks that no browser needs, bytes behind the end or within the compressed stream.

Source: W3C, Portable Network Graphics (PNG) Specification (Second Edition): sections 5.3 (chunks), 9.2 (filters), 8.2 (Adam7),
11.2 and 11.3.2 (what each chunk holds).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

MOST_BYTES = 64 * 1024
MOST_SIDE = 512
"""Pixels, of width and of height."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By colour type: grey, RGB, palette, grey with alpha, RGB with alpha."""
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Column and row where each pass begins, and its steps."""
_MOST_FILTER = 4
_OTHERS = (
    (b"\xff\xd8\xff", "a JPEG"),
    (b"GIF8", "a GIF"),
    (b"RIFF", "a WebP"),
    (b"BM", "a BMP"),
    (b"\x00\x00\x01\x00", "an icon (ICO)"),
)


class NotAnImage(ValueError):
    """The reason why an image is refused, as a constraint for the caller."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What an IHDR says, checked."""

    width: int
    height: int
    depth: int
    color: int
    interlaced: bool

    def passes(self) -> Iterator[tuple[int, int]]:
        """Width and height of each pass that has pixels; of the whole image where it is not interlaced."""
        if not self.interlaced:
            yield self.width, self.height
            return
        for x, y, across, down in _ADAM7:
            width, height = -(-(self.width - x) // across), -(-(self.height - y) // down)
            if width > 0 and height > 0:
                yield width, height

    def rows(self) -> Iterator[tuple[int, int]]:
        """Number of rows and bytes of a row, of each pass; each row begins with a byte that names its filter."""
        bits = self.depth * _CHANNELS[self.color]
        for width, height in self.passes():
            yield height, 1 + (width * bits + 7) // 8


def rewritten(image: bytes) -> bytes:
    """The same image with nothing else in it. Raises NotAnImage for anything but a PNG of at most `MOST_BYTES` and `MOST_SIDE`
    pixels a side, and for one that is damaged."""
    if len(image) > MOST_BYTES:
        raise NotAnImage(f"must have at most {MOST_BYTES // 1024} KiB; it has {-(-len(image) // 1024)}")
    _demand_png(image)
    found, data = _chunks_of(image)
    header = _header(found.pop(b"IHDR"))
    _check_colors(header, found.get(b"PLTE"), found.get(b"tRNS"))
    pixels = _inflated(data, sum(count * size for count, size in header.rows()))
    _check_filters(header, pixels)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", header.width, header.height, header.depth, header.color, 0, 0, header.interlaced))]
    parts += [(name, found[name]) for name in (b"PLTE", b"tRNS") if name in found]
    parts += [(b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    made = _SIGNATURE + b"".join(_chunk(name, content) for name, content in parts)
    if len(made) > MOST_BYTES:
        raise NotAnImage(f"must have at most {MOST_BYTES // 1024} KiB once it is rewritten: make it smaller")
    return made


def _demand_png(image: bytes) -> None:
    if image.startswith(_SIGNATURE):
        return
    start = image[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"<") and (b"<svg" in start or start.startswith((b"<?xml", b"<!doctype svg"))):
        raise NotAnImage("must be a PNG; it is an SVG, which can carry scripts")
    for beginning, name in _OTHERS:
        if image.startswith(beginning):
            raise NotAnImage(f"must be a PNG; it is {name}")
    raise NotAnImage("must be a PNG")


def _chunks_of(image: bytes) -> tuple[dict[bytes, bytes], bytes]:
    """The chunks that are kept, by name, and the compressed pixels. Raises NotAnImage where one is damaged, misplaced, missing,
    there twice, or of a kind that an image can not do without and that is unknown."""
    found: dict[bytes, bytes] = {}
    data: list[bytes] = []
    before = b""
    for name, content in _read(image):
        if (name == b"IHDR") != (not before):
            raise NotAnImage("must be a PNG that begins with its header")
        if name == b"IEND":
            if content or not data:
                raise NotAnImage("must be a PNG with pixels and a proper end")
            return found, b"".join(data)
        if name == b"IDAT":
            if data and before != b"IDAT":
                raise NotAnImage("must be a PNG with its pixels in one place")
            data.append(content)
        elif name in (b"IHDR", b"PLTE", b"tRNS"):
            if name in found or data or (name == b"PLTE" and b"tRNS" in found):
                raise NotAnImage(f"must be a PNG with its {name.decode()} in its place, and once")
            found[name] = content
        elif name[:1].isupper():
            raise NotAnImage(f"must be a PNG without chunks of an unknown kind; it has {name.decode()}")
        before = name
    raise NotAnImage("must be a whole PNG; its end is missing")


def _read(image: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place < len(image):
        if len(image) - place < 12:
            raise NotAnImage("must be a whole PNG; it is cut off")
        length, name = struct.unpack_from(">I4s", image, place)
        if not name.isalpha() or not name.isascii():
            raise NotAnImage("must be an undamaged PNG")
        if length > len(image) - place - 12:
            raise NotAnImage("must be a whole PNG; it is cut off")
        content = image[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack_from(">I", image, place + 8 + length)
        if zlib.crc32(name + content) != checksum:
            raise NotAnImage("must be an undamaged PNG; a checksum is wrong")
        yield name, content
        place += 12 + length


def _header(content: bytes) -> _Header:
    if len(content) != 13:
        raise NotAnImage("must be a PNG with a proper header")
    width, height, depth, color, compression, filtering, interlace = struct.unpack(">IIBBBBB", content)
    if not 1 <= width <= MOST_SIDE or not 1 <= height <= MOST_SIDE:
        raise NotAnImage(f"must be at most {MOST_SIDE} by {MOST_SIDE} pixels; it is {width} by {height}")
    if depth not in _DEPTHS.get(color, ()) or compression or filtering or interlace > 1:
        raise NotAnImage("must be a PNG with a proper header")
    return _Header(width, height, depth, color, bool(interlace))


def _check_colors(header: _Header, palette: bytes | None, transparency: bytes | None) -> None:
    """Raises NotAnImage where palette or transparency do not fit the header."""
    entries = 0 if palette is None else len(palette) // 3
    if palette is not None:
        most = 2**header.depth if header.color == _PALETTE else 256
        if len(palette) % 3 or not 1 <= entries <= most or header.color in (0, 4):
            raise NotAnImage("must be a PNG whose palette fits its header")
    elif header.color == _PALETTE:
        raise NotAnImage("must be a PNG with its palette")
    if transparency is None:
        return
    sizes: dict[int, range] = {0: range(2, 3), 2: range(6, 7), _PALETTE: range(1, entries + 1)}
    if len(transparency) not in sizes.get(header.color, range(0)):
        raise NotAnImage("must be a PNG whose transparency fits its header")


def _inflated(data: bytes, size: int) -> bytes:
    """The `size` bytes of the compressed pixels. No more than one byte beyond them is ever made."""
    unpacking = zlib.decompressobj()
    try:
        pixels = unpacking.decompress(data, size + 1)
        if len(pixels) == size and not unpacking.eof:
            # The checksum behind the last byte may not be read yet.
            pixels += unpacking.decompress(unpacking.unconsumed_tail, 1)
    except zlib.error as error:
        raise NotAnImage("must be an undamaged PNG; its pixels can not be read") from error
    if len(pixels) != size or not unpacking.eof:
        raise NotAnImage("must be a PNG with as many pixels as its header says")
    return pixels


def _check_filters(header: _Header, pixels: bytes) -> None:
    place = 0
    for count, size in header.rows():
        if max(pixels[place : place + count * size : size]) > _MOST_FILTER:
            raise NotAnImage("must be an undamaged PNG; a row's filter is unknown")
        place += count * size


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
