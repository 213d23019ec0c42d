// Bytes as text, in hex and base64. Decoders work on bytes where the text is a secret: a string can not be wiped.

const HEX = "0123456789abcdef";
const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIXTH = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; i += 1) SIXTH[BASE64.charCodeAt(i)] = i;
SIXTH["-".charCodeAt(0)] = 62;
SIXTH["_".charCodeAt(0)] = 63;
const EQUALS = 0x3d;

export function toHex(bytes) {
  let text = "";
  for (const byte of bytes) text += HEX[byte >> 4] + HEX[byte & 15];
  return text;
}

function digit(code) {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** The bytes that hex digits (as bytes of ASCII) spell; null where they are none. */
export function fromHex(codes) {
  if (codes.length % 2) return null;
  const bytes = new Uint8Array(codes.length / 2);
  for (let i = 0; i < bytes.length; i += 1) {
    const high = digit(codes[2 * i]);
    const low = digit(codes[2 * i + 1]);
    if (high < 0 || low < 0) return null;
    bytes[i] = (high << 4) | low;
  }
  return bytes;
}

/** The bytes that base64 (as bytes of ASCII, either alphabet, padded or not) spells; null where it is none. */
export function fromBase64(codes) {
  let end = codes.length;
  while (end > 0 && codes[end - 1] === EQUALS && codes.length - end < 2) end -= 1;
  if (end % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((end * 3) / 4));
  let held = 0;
  let bits = 0;
  let place = 0;
  for (let i = 0; i < end; i += 1) {
    const six = codes[i] < 128 ? SIXTH[codes[i]] : -1;
    if (six < 0) return null;
    held = ((held << 6) | six) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[place] = (held >> bits) & 255;
      place += 1;
    }
  }
  return held & ((1 << bits) - 1) ? null : bytes;
}

export function ascii(text) {
  return new TextEncoder().encode(text);
}

/** `size` bytes in hex or base64, as hex; null for anything else. For what is no secret: signatures and public keys. */
export function readPublic(text, size) {
  const codes = ascii(text.trim());
  const bytes = (codes.length === 2 * size && fromHex(codes)) || fromBase64(codes);
  return bytes && bytes.length === size ? toHex(bytes) : null;
}
