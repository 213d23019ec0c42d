// Reads a signer's key file: PKCS#8 (PEM or DER), the 32 bytes of the seed in hex, or a JWK (RFC 8037). Only the 32 bytes of
// RFC 8032 leave this module, in a buffer that the caller wipes; all others are wiped here. No part of a secret becomes a
// string, since strings can not be wiped.

import { ascii, fromBase64, fromHex } from "./bytes.js";

export const MOST_BYTES = 16 * 1024;
export const SEED = 32;
export const FORMATS = "PKCS#8 (PEM or DER), 32 bytes in hex, or JWK";
const ED25519 = [0x06, 0x03, 0x2b, 0x65, 0x70]; // the object identifier 1.3.101.112 of RFC 8410
const BEGIN = "-----BEGIN ";
const QUOTE = 0x22;

export class KeyFileError extends Error {}

const refuse = (words) => { throw new KeyFileError(words); };
const blank = (code) => code === 0x20 || (code >= 0x09 && code <= 0x0d);

/** The 32 bytes of the key in `file` (Uint8Array), which is wiped. Throws KeyFileError with words for a person. */
export function readKeyFile(file) {
  try {
    if (file.length === 0) refuse("This file is empty.");
    if (file.length > MOST_BYTES) refuse("This file is too large for a key.");
    return seedOf(file);
  } finally {
    file.fill(0);
  }
}

function seedOf(file) {
  const text = trimmed(file);
  // Digits first: DER begins with the byte that is the digit 0 in ASCII.
  const seed = text.length === 2 * SEED ? fromHex(text) : null;
  if (seed) return seed;
  if (file[0] === 0x30) return fromDer(file);
  if (startsWith(text, BEGIN)) return fromPem(text);
  if (text[0] === 0x7b) return fromJwk(text);
  return refuse(`This is no key that can be read here. Key files are: ${FORMATS}.`);
}

function trimmed(bytes) {
  let from = startsWith(bytes, "\u{feff}") ? 3 : 0; // some editors begin a text with a mark
  let to = bytes.length;
  while (from < to && blank(bytes[from])) from += 1;
  while (to > from && blank(bytes[to - 1])) to -= 1;
  return bytes.subarray(from, to);
}

function startsWith(bytes, text) {
  const codes = ascii(text);
  return codes.every((code, at) => bytes[at] === code);
}

function find(bytes, text, from = 0) {
  const codes = ascii(text);
  for (let at = from; at + codes.length <= bytes.length; at += 1) {
    if (codes.every((code, i) => bytes[at + i] === code)) return at;
  }
  return -1;
}

function fromPem(text) {
  if (startsWith(text, `${BEGIN}ENCRYPTED`)) {
    refuse("This key is locked with a password. Unlock a copy first: openssl pkey -in key.pem -out unlocked.pem");
  }
  if (startsWith(text, `${BEGIN}OPENSSH`)) {
    refuse("OpenSSH keys can not be read here. A key for signing: openssl genpkey -algorithm ed25519 -out key.pem");
  }
  if (startsWith(text, `${BEGIN}PUBLIC`)) refuse("This is the public half. The private key is in another file.");
  const head = `${BEGIN}PRIVATE KEY-----`;
  if (!startsWith(text, head)) refuse("This PEM file has no Ed25519 key of the form PKCS#8 (BEGIN PRIVATE KEY).");
  const end = find(text, "-----END PRIVATE KEY-----", head.length);
  if (end < 0) refuse("This key file is cut off: its last line is missing.");
  const packed = new Uint8Array(end - head.length);
  let size = 0;
  for (let at = head.length; at < end; at += 1) {
    if (!blank(text[at])) { packed[size] = text[at]; size += 1; }
  }
  const der = fromBase64(packed.subarray(0, size));
  packed.fill(0);
  if (!der) refuse("This key file is damaged: its text is no base64.");
  try {
    return fromDer(der);
  } finally {
    der.fill(0);
  }
}

/** One DER value at `at`: { tag, from, to }. */
function value(der, at) {
  let from = at + 2;
  let size = der[at + 1];
  if (size >= 0x80) {
    const digits = size & 0x7f;
    if (digits < 1 || digits > 2) refuse("This key file is damaged.");
    size = 0;
    for (let i = 0; i < digits; i += 1) size = size * 256 + der[from + i];
    from += digits;
  }
  if (!(from + size <= der.length)) refuse("This key file is cut off.");
  return { tag: der[at], from, to: from + size };
}

/** RFC 5958: SEQUENCE { version, SEQUENCE { algorithm }, OCTET STRING, … }; RFC 8410: the string holds a string of 32 bytes. */
function fromDer(der) {
  const whole = value(der, 0);
  const version = value(der, whole.from);
  const algorithm = value(der, version.to);
  if (whole.tag !== 0x30 || version.tag !== 0x02 || algorithm.tag !== 0x30) {
    refuse("This is no private key of the form PKCS#8.");
  }
  if (algorithm.to - algorithm.from !== ED25519.length || !ED25519.every((code, i) => der[algorithm.from + i] === code)) {
    refuse("This key is of another kind: signers have Ed25519 keys.");
  }
  const outer = value(der, algorithm.to);
  const inner = value(der, outer.from);
  if (outer.tag !== 0x04 || inner.tag !== 0x04 || inner.to !== outer.to || inner.to - inner.from !== SEED) {
    refuse("This key file is damaged: an Ed25519 key has 32 bytes.");
  }
  return der.slice(inner.from, inner.to);
}

/**
 * The string that follows the name `d` in flat JSON: where its characters begin and end. Names are looked at outside of
 * other strings alone.
 */
function secretPlace(text) {
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== QUOTE) continue;
    const end = closing(text, at);
    let next = end + 1;
    while (blank(text[next])) next += 1;
    if (end - at === 2 && text[at + 1] === 0x64 && text[next] === 0x3a) {
      next += 1;
      while (blank(text[next])) next += 1;
      return text[next] === QUOTE ? { from: next + 1, to: closing(text, next) } : null;
    }
    at = end;
  }
  return null;
}

function closing(text, quote) {
  for (let at = quote + 1; at < text.length; at += 1) {
    if (text[at] === 0x5c) at += 1;
    else if (text[at] === QUOTE) return at;
  }
  return refuse("This key file is damaged: it is no JSON.");
}

function fromJwk(text) {
  const place = secretPlace(text);
  if (!place) refuse("This JWK has no private part (d).");
  const secret = text.slice(place.from, place.to);
  const seed = fromBase64(secret);
  secret.fill(0);
  try {
    text.fill(0x41, place.from, place.to); // the rest may become a string
    const rest = parsed(text);
    if (rest.d !== "A".repeat(place.to - place.from)) refuse("This JWK has its private part (d) twice.");
    if (rest.kty !== "OKP" || rest.crv !== "Ed25519") refuse("This key is of another kind: signers have Ed25519 keys.");
    if (!seed || seed.length !== SEED) refuse("This key file is damaged: an Ed25519 key has 32 bytes.");
    return seed.slice();
  } finally {
    seed?.fill(0);
  }
}

function parsed(text) {
  try {
    return JSON.parse(new TextDecoder().decode(text));
  } catch {
    return refuse("This key file is damaged: it is no JSON.");
  }
}
