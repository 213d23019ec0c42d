// Who is signed in: the key of this tab, and what the service says that it may do.
import { get, request } from "./api.js";
import { signal, useSignal } from "./signal.js";
import { forgetKey, onRefusal, readKey, watchIdleness, writeKey } from "./key.js";

const FORM = /^sk_(live|test)_[A-Za-z0-9]{16,64}$/;
/** `{ me, reason }`: `me` is null while nobody is signed in, `reason` why nobody is any more. */
const session = signal({ me: null, reason: null });

onRefusal((reason) => session.set({ me: null, reason }));

/** Whether a text has the form of an API key, spaces around it aside. */
export const isKey = (text) => FORM.test(String(text).trim());

/**
 * Ask the service about the key, and keep it in this tab where it is valid. `only(me)` says why a key can not be used here, or
 * null. Raises ApiFailure, and Error with those words.
 */
export async function signIn(typed, only = () => null) {
  const key = typed.trim();
  const known = await about(key);
  const why = only(known);
  if (why) throw new Error(why);
  writeKey(key);
  session.set({ me: known, reason: null });
}

/** What the service says about a key: the answer of /auth/test, and its merchant where the key may read that. */
async function about(key) {
  const { data } = await request("GET", "/auth/test", { as: key });
  const may = data.permissions.includes("merchant:read");
  const merchant = may ? (await request("GET", "/merchant", { as: key }).catch(() => ({ data: null }))).data : null;
  return { ...data, merchant };
}

/** Go on with the key that this tab still has, after the page was loaded again. */
export async function resume() {
  const key = readKey();
  if (!key) return;
  try {
    const known = await about(key);
    if (readKey() === key) session.set({ me: known, reason: null });
  } catch (error) {
    if (error.status === 401 || error.status === 403) {
      forgetKey();
      session.set({ me: null, reason: error.message });
      return;
    }
    throw error;
  }
}

/** Forget the key. `reason` is shown on the way in: "asked", "idle", or words of the service. */
export function signOut(reason = "asked") {
  forgetKey();
  session.set({ me: null, reason });
}

/** Read anew what the key may do. */
export async function refresh() {
  const key = readKey();
  const { data } = await get("/auth/test");
  // Who has signed out meanwhile stays so.
  if (session.value.me && readKey() === key) session.set({ ...session.value, me: { ...session.value.me, ...data } });
}

export const me = () => session.value.me;
export const can = (permission) => Boolean(me()?.permissions.includes(permission));
export const isTest = () => me()?.type === "test";

/** `{ me, reason }`, and a drawing of the component when it changes. */
export const useSession = () => useSignal(session);

export { watchIdleness };
