// Wallets that announce themselves to the page: EIP-6963 for EVM networks, TIP-6963 for Tron, and the older objects of a page
// where nobody announces anything. A wallet is a stranger: its name is text, cut and cleaned, and its icon an image, or none.
const MOST_WALLETS = 12;
const MOST_NAME = 40;
const MOST_ICON = 64 * 1024;
const ICON = /^data:image\/(png|jpeg|gif|webp|svg\+xml)[;,]/i;
// Characters that nobody sees, or that turn the direction of the text around them.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** The name as text that can be shown; null where there is none. */
export function nameOf(value) {
  const name = typeof value === "string" ? value.slice(0, 4 * MOST_NAME).replace(UNSEEN, "").trim() : "";
  return [...name].slice(0, MOST_NAME).join("") || null;
}

/** The icon, where it is an image that the page has already; null for anything that would be fetched, or run. */
export const iconOf = (value) => (typeof value === "string" && value.length <= MOST_ICON && ICON.test(value) ? value : null);

const usable = (provider) => provider !== null && typeof provider === "object" && typeof provider.request === "function";

function announced(found, event) {
  const { info, provider } = event.detail ?? {};
  if (!usable(provider) || found.size >= MOST_WALLETS || found.has(provider)) return false;
  found.set(provider, { provider, name: nameOf(info?.name), icon: iconOf(info?.icon) });
  return true;
}

/**
 * Wallets of a `family` ("evm", "tron"). `changed(wallets)` is called now, and whenever another one announces itself; wallets
 * are `{ provider, name, icon }`, with a null name where nobody gave one. Returns the function that ends it.
 */
export function watch(family, changed) {
  const [asks, says] = family === "tron"
    ? ["TIP6963:requestProvider", "TIP6963:announceProvider"]
    : ["eip6963:requestProvider", "eip6963:announceProvider"];
  const found = new Map();
  const tell = () => changed(found.size ? [...found.values()] : older(family));
  const hear = (event) => {
    try {
      if (announced(found, event)) tell();
    } catch {
      // A wallet whose announcement can not be read is none.
    }
  };
  window.addEventListener(says, hear);
  window.addEventListener("tronlink#initialized", tell);
  window.dispatchEvent(new Event(asks));
  tell();
  return () => {
    window.removeEventListener(says, hear);
    window.removeEventListener("tronlink#initialized", tell);
  };
}

/** Wallets that lie in the page as an object, from before there were announcements. */
function older(family) {
  if (family === "evm") return usable(window.ethereum) ? [{ provider: window.ethereum, name: null, icon: null }] : [];
  const provider = usable(window.tron) ? window.tron : window.tronLink;
  return usable(provider) ? [{ provider, name: "TronLink", icon: null }] : [];
}
