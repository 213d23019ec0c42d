// A new key for a signer, made in this tab: the private half goes into a file of the signer's, and nowhere else.
import { ascii, readPublic, toHex } from "./bytes.js";

const HEAD = "-----BEGIN PRIVATE KEY-----";
const TAIL = "-----END PRIVATE KEY-----";
const SPKI = "302a300506032b6570032100"; // RFC 8410: what stands before the 32 bytes of a public key

/** base64 in bytes of ASCII: a string could not be wiped. */
function base64(bytes) {
  const codes = ascii("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
  const out = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(0x3d);
  for (let at = 0, place = 0; at < bytes.length; at += 3, place += 4) {
    const three = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const left = Math.min(3, bytes.length - at);
    for (let i = 0; i <= left; i += 1) out[place + i] = codes[(three >> (18 - 6 * i)) & 63];
  }
  return out;
}

/** A key pair: `{ publicKey, file }`, in hex, and a Blob of PKCS#8 in PEM. Throws where the browser has no Ed25519. */
export async function newKeyFile() {
  const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"]);
  const publicKey = toHex(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)));
  const secret = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
  const text = base64(secret);
  const file = new Blob([`${HEAD}\n`, text, `\n${TAIL}\n`], { type: "application/x-pem-file" });
  secret.fill(0);
  text.fill(0);
  return { publicKey, file };
}

/** A public key in hex, from hex, base64 or PEM (BEGIN PUBLIC KEY); null for anything else. */
export function readPublicKey(words) {
  const text = String(words ?? "").trim();
  const pem = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----$/.exec(text);
  const whole = readPublic((pem ? pem[1] : text).replace(/\s+/g, ""), 44);
  if (whole) return whole.startsWith(SPKI) ? whole.slice(SPKI.length) : null;
  return pem ? null : readPublic(text, 32);
}
