// The API key of this tab: in sessionStorage and nowhere else, gone after 30 minutes without input.
const KEY = "gateway-key";
const INPUT = "gateway-input";
export const IDLE_MINUTES = 30;

let refusal = () => {};

/**
 * What is done when the service refuses the key, or when nobody has touched the page for too long: `sign out`, with the reason.
 */
export function onRefusal(done) {
  refusal = done;
}

/** The key, or null where nobody is signed in. Signs out where nobody has touched the page for 30 minutes. */
export function readKey() {
  const key = sessionStorage.getItem(KEY);
  if (key && idle()) {
    refuse("idle");
    return null;
  }
  return key;
}

export function writeKey(key) {
  sessionStorage.setItem(KEY, key);
  touch();
}

export function forgetKey() {
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(INPUT);
}

/** Says that the key is not accepted any more, and why ("refused", "idle", or the service's words). */
export function refuse(reason) {
  forgetKey();
  refusal(reason);
}

/** Notes that a person is there. */
export function touch() {
  if (sessionStorage.getItem(KEY)) sessionStorage.setItem(INPUT, String(Date.now()));
}

function idle() {
  return Date.now() - Number(sessionStorage.getItem(INPUT) ?? 0) > IDLE_MINUTES * 60_000;
}

/** Watches for input, and for its absence: also after the machine slept, when no timer ran. */
export function watchIdleness() {
  let noted = 0;
  const note = () => {
    // What is over is over: a touch after the time does not bring the key back.
    if (readKey() && Date.now() - noted > 5_000) {
      noted = Date.now();
      touch();
    }
  };
  for (const input of ["pointerdown", "keydown", "wheel", "touchstart", "input"]) {
    addEventListener(input, note, { capture: true, passive: true });
  }
  setInterval(readKey, 10_000);
  addEventListener("visibilitychange", () => document.visibilityState === "visible" && readKey());
  addEventListener("pageshow", readKey);
}
