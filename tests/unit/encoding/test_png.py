"""Logos are rewritten: what another program made stays the same image, and nothing else comes through.

`pngsuite.json` has images of Willem van Schaik's PngSuite (http://www.schaik.com/pngsuite/; free to use, copy and distribute) in
base64, by their names there: "basi" is interlaced, then "g", "c", "p", "a" for the colours, and the depth.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
import segno
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.encoding.png import MOST_BYTES, NotAnImage, rewritten

SUITE = {name: base64.b64decode(text) for name, text in json.loads(Path(__file__).with_name("pngsuite.json").read_text()).items()}
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(name: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def header(width: int, height: int, depth: int = 8, color: int = 0, more: bytes = b"\0\0\0") -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBB", width, height, depth, color) + more)


def png(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks)


def data(rows: bytes) -> bytes:
    return chunk(b"IDAT", zlib.compress(rows))


def chunks(image: bytes) -> list[tuple[bytes, bytes]]:
    """Names and contents, read by this test itself."""
    found, place = [], 8
    while place < len(image):
        (length,) = struct.unpack_from(">I", image, place)
        found.append((image[place + 4 : place + 8], image[place + 8 : place + 8 + length]))
        place += 12 + length
    return found


def content(image: bytes) -> dict[bytes, bytes]:
    """What an image is made of: header, colours and the inflated pixels."""
    found: dict[bytes, bytes] = {}
    for name, inner in chunks(image):
        if name in (b"IHDR", b"PLTE", b"tRNS", b"IDAT"):
            found[name] = found.get(name, b"") + inner
    return found | {b"IDAT": zlib.decompress(found[b"IDAT"])}


def small(width: int = 2, height: int = 2) -> bytes:
    return png(header(width, height), data((b"\0" + b"\x7f" * width) * height), chunk(b"IEND"))


@pytest.mark.parametrize("name", sorted(SUITE))
def test_images_of_the_suite_stay_what_they_are(name: str) -> None:
    made = rewritten(SUITE[name])
    assert content(made) == content(SUITE[name])
    assert [each for each, _ in chunks(made) if each not in (b"PLTE", b"tRNS")] == [b"IHDR", b"IDAT", b"IEND"]
    assert rewritten(made) == made


@pytest.mark.parametrize("color", ["black", None], ids=["grey", "transparent"])
def test_an_image_of_another_program_stays_what_it_is(color: str | None) -> None:
    drawn = io.BytesIO()
    segno.make("a payment").save(drawn, kind="png", scale=4, dark="#0b6e4f", light=color)
    assert content(rewritten(drawn.getvalue())) == content(drawn.getvalue())


def test_nothing_but_the_image_is_left() -> None:
    script = b"<script>alert(1)</script>"
    hidden = zlib.compress(b"\0\x7f\x7f" * 2) + script
    image = png(
        header(2, 2),
        chunk(b"tEXt", b"Comment\0" + script),
        chunk(b"iTXt", b"XML\0" + script),
        chunk(b"eXIf", script),
        chunk(b"acTL", struct.pack(">II", 2, 0)),
        chunk(b"fcTL", b"\0" * 26),
        chunk(b"IDAT", hidden[:5]),
        chunk(b"IDAT", hidden[5:]),
        chunk(b"fdAT", b"\0\0\0\1" + script),
        chunk(b"IEND"),
    )
    made = rewritten(image + script + small())
    assert script not in made
    assert b"script" not in made
    assert made == rewritten(small())


SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
PIXELS = data(b"\0\x7f\x7f" * 2)
END = chunk(b"IEND")
REFUSED = {
    "SVG": (SVG, "SVG, which can carry scripts"),
    "SVG behind a byte order mark": (b"\xef\xbb\xbf \n<SVG onload=alert(1)>", "SVG"),
    "JPEG": (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG"),
    "GIF": (b"GIF89a", "a GIF"),
    "WebP": (b"RIFF\0\0\0\0WEBP", "a WebP"),
    "nothing": (b"", "must be a PNG"),
    "text": (b"hello", "must be a PNG"),
    "too large a file": (small() + b"\0" * MOST_BYTES, "at most 64 KiB"),
    "only a signature": (SIGNATURE, "end is missing"),
    "no header": (png(PIXELS, END), "header"),
    "a header later": (png(chunk(b"tEXt"), header(2, 2), PIXELS, END), "header"),
    "two headers": (png(header(2, 2), header(2, 2), PIXELS, END), "header"),
    "a short header": (png(chunk(b"IHDR", b"\0" * 12), PIXELS, END), "header"),
    "no width": (png(header(0, 2), PIXELS, END), "512 by 512 pixels; it is 0 by 2"),
    "too wide": (png(header(513, 1), data(b"\0" * 514), END), "512 by 512 pixels; it is 513 by 1"),
    "as wide as can be": (png(header(2**32 - 1, 2**32 - 1), PIXELS, END), "512"),
    "an unknown depth": (png(header(2, 2, 3), PIXELS, END), "proper header"),
    "an unknown colour": (png(header(2, 2, 8, 5), PIXELS, END), "proper header"),
    "an unknown compression": (png(header(2, 2, more=b"\1\0\0"), PIXELS, END), "proper header"),
    "an unknown interlacing": (png(header(2, 2, more=b"\0\0\2"), PIXELS, END), "proper header"),
    "no pixels": (png(header(2, 2), END), "with pixels"),
    "no end": (png(header(2, 2), PIXELS), "end is missing"),
    "an end with contents": (png(header(2, 2), PIXELS, chunk(b"IEND", b"x")), "proper end"),
    "cut off": (png(header(2, 2), PIXELS)[:-3], "cut off"),
    "a length beyond the file": (png(header(2, 2), b"\x7f\xff\xff\xffIDAT", b"\0" * 8), "cut off"),
    "a wrong checksum": (png(header(2, 2), PIXELS[:-1] + bytes([PIXELS[-1] ^ 1]), END), "checksum"),
    "an unknown critical chunk": (png(header(2, 2), chunk(b"EVIL"), PIXELS, END), "unknown kind; it has EVIL"),
    "a chunk without a name": (png(header(2, 2), chunk(b"\0\1\2\3"), PIXELS, END), "undamaged"),
    "pixels in two places": (png(header(2, 2), PIXELS, chunk(b"tEXt"), PIXELS, END), "one place"),
    "no palette": (png(header(2, 2, 8, 3), PIXELS, END), "its palette"),
    "an odd palette": (png(header(2, 2, 8, 3), chunk(b"PLTE", b"\0" * 4), PIXELS, END), "palette fits"),
    "too long a palette": (png(header(2, 2, 1, 3), chunk(b"PLTE", b"\0" * 9), PIXELS, END), "palette fits"),
    "a palette of greys": (png(header(2, 2), chunk(b"PLTE", b"\0" * 3), PIXELS, END), "palette fits"),
    "two palettes": (png(header(2, 2, 8, 3), *[chunk(b"PLTE", b"\0" * 3)] * 2, PIXELS, END), "in its place"),
    "a palette behind the pixels": (png(header(2, 2, 8, 3), PIXELS, chunk(b"PLTE", b"\0" * 3), END), "in its place"),
    "transparency before the palette": (
        png(header(2, 2, 8, 3), chunk(b"tRNS", b"\0"), chunk(b"PLTE", b"\0" * 3), PIXELS, END), "in its place"
    ),
    "transparency of too many": (
        png(header(2, 2, 8, 3), chunk(b"PLTE", b"\0" * 3), chunk(b"tRNS", b"\0\0"), PIXELS, END), "transparency fits"
    ),
    "transparency beside alpha": (png(header(1, 1, 8, 4), chunk(b"tRNS", b"\0\0"), data(b"\0\0\0"), END), "transparency fits"),
    "no zlib": (png(header(2, 2), chunk(b"IDAT", b"\0" * 20), END), "can not be read"),
    "too few pixels": (png(header(2, 2), data(b"\0\x7f\x7f"), END), "as many pixels"),
    "too many pixels": (png(header(2, 2), data(b"\0\x7f\x7f" * 3), END), "as many pixels"),
    "a stream without its end": (png(header(2, 2), chunk(b"IDAT", zlib.compress(b"\0\x7f\x7f" * 2)[:-4]), END), "as many pixels"),
    "an unknown filter": (png(header(2, 2), data(b"\0\x7f\x7f\5\x7f\x7f"), END), "filter"),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_anything_else_is_refused_with_the_reason(what: str) -> None:
    image, reason = REFUSED[what]
    with pytest.raises(NotAnImage, match=reason):
        rewritten(image)


def test_a_bomb_is_not_inflated() -> None:
    bomb = png(header(512, 512, 1), chunk(b"IDAT", zlib.compress(b"\0" * 60_000_000, 9)), chunk(b"IEND"))
    assert len(bomb) < MOST_BYTES
    tracemalloc.start()
    try:
        with pytest.raises(NotAnImage, match="as many pixels"):
            rewritten(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SUITE)), st.data())
def test_a_damaged_image_is_refused_or_still_an_image(name: str, draw: st.DataObject) -> None:
    image = bytearray(SUITE[name])
    for _ in range(draw.draw(st.integers(1, 4))):
        place = draw.draw(st.integers(0, len(image) - 1))
        image[place] = draw.draw(st.integers(0, 255))
    try:
        made = rewritten(bytes(image))
    except NotAnImage:
        return
    assert rewritten(made) == made


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.integers(0, 70), st.integers(0, 70), st.integers(0, 17), st.integers(0, 7), st.binary(min_size=3, max_size=3)),
    st.lists(st.tuples(st.sampled_from([b"PLTE", b"tRNS", b"IDAT", b"tEXt", b"IEND"]), st.binary(max_size=60)), max_size=6),
)
def test_any_chunks_in_any_order_end_in_an_image_or_a_refusal(
    first: tuple[int, int, int, int, bytes], rest: list[tuple[bytes, bytes]]
) -> None:
    pieces = [chunk(name, zlib.compress(inner) if name == b"IDAT" else inner) for name, inner in rest]
    try:
        made = rewritten(png(header(*first), *pieces))
    except NotAnImage:
        return
    assert content(made)[b"IHDR"] == chunks(png(header(*first)))[0][1]
