// Ed25519 by the browser's own cryptography (WebCrypto): one signature by a key file, and the proof of each signature before
// it is sent. A key is imported so that it can not be read back, and dropped after its one signature.

import { ascii, fromHex, readPublic, toHex } from "./bytes.js";
import { KeyFileError, MOST_BYTES, readKeyFile } from "./key_files.js";

const NAME = { name: "Ed25519" };
const PKCS8 = fromHex(ascii("302e020100300506032b657004220420")); // RFC 8410: what stands before the 32 bytes
const SOME_KEY = fromHex(ascii("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")); // RFC 8032 section 7.1

export class SigningError extends Error {}

const subtle = () => globalThis.crypto?.subtle;

/** Whether this browser has Ed25519. Pages that were not loaded over https have no cryptography at all. */
export async function hasEd25519() {
  try {
    await subtle().importKey("raw", SOME_KEY, NAME, false, ["verify"]);
    return true;
  } catch {
    return false;
  }
}

/** Whether `signature` (hex) is that of `publicKey` (hex) over the UTF-8 bytes of `text`. */
async function verified(publicKey, text, signature) {
  try {
    const key = await subtle().importKey("raw", fromHex(ascii(publicKey)), NAME, false, ["verify"]);
    return await subtle().verify(NAME, key, fromHex(ascii(signature)), ascii(text));
  } catch {
    return false;
  }
}

/** Those of `signers` ({ id, public_key }) whose signature over `text` this is. */
async function ownerOf(signers, text, signature) {
  for (const signer of signers) {
    if (await verified(signer.public_key, text, signature)) return signer;
  }
  return null;
}

async function imported(seed) {
  const packed = new Uint8Array(PKCS8.length + seed.length);
  packed.set(PKCS8);
  packed.set(seed, PKCS8.length);
  try {
    return await subtle().importKey("pkcs8", packed, NAME, false, ["sign"]);
  } finally {
    packed.fill(0);
  }
}

/** The signature (hex) over `text` by the key in `file` (File or Blob). Throws KeyFileError. */
async function signedBy(file, text) {
  if (file.size > MOST_BYTES) throw new KeyFileError("This file is too large for a key.");
  const seed = readKeyFile(new Uint8Array(await file.arrayBuffer()));
  try {
    return toHex(new Uint8Array(await subtle().sign(NAME, await imported(seed), ascii(text))));
  } finally {
    seed.fill(0);
  }
}

/**
 * One signature over `text` by the key in `file`, which has to be one of `signers`: { signer_id, signature }.
 * Throws KeyFileError, SigningError.
 */
export async function signOnce(file, text, signers) {
  const signature = await signedBy(file, text);
  const owner = await ownerOf(signers, text, signature);
  if (!owner) throw new SigningError(`This key is none of the signers': ${signers.map((signer) => signer.id).join(", ")}.`);
  return { signer_id: owner.id, signature };
}

/**
 * A signature that was made elsewhere, in hex or base64: { signer_id, signature }. Where the browser can, it is verified;
 * else `chosen` names the signer, and the service verifies alone. Throws SigningError.
 */
export async function readSignature(words, text, signers, chosen) {
  const signature = readPublic(words, 64);
  if (!signature) throw new SigningError("A signature is 64 bytes, in hex or base64.");
  if (await hasEd25519()) {
    const owner = await ownerOf(signers, text, signature);
    if (!owner) throw new SigningError("This is no signature of a signer over exactly this text.");
    return { signer_id: owner.id, signature };
  }
  if (!signers.some((signer) => signer.id === chosen)) throw new SigningError("Choose whose signature this is.");
  return { signer_id: chosen, signature };
}
