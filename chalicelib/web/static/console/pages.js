// The console's pages. Each is loaded when it is first gone to; what an admin key may not do is not shown.
/** Headings of the menu, in their order. */
export const groups = ["", "Money", "Screening", "Treasury", "Merchants", "Service", "Settings"];

/**
 * `needs`: the permissions without which a page is of no use; `menu`: its heading; without one it is reached from other pages.
 */
export const pages = [
  { path: "/", title: "Overview", menu: "", load: () => import("./overview.js") },
  { path: "/withdrawals", title: "Waiting withdrawals", needs: "withdrawals:read", menu: "Money",
    load: () => import("./withdrawals.js") },
  { path: "/withdrawals/:id", title: "Withdrawal", needs: "withdrawals:read", load: () => import("./withdrawal.js") },
  { path: "/held", title: "Held deposits", needs: "transactions:read", menu: "Money", load: () => import("./held.js") },
  { path: "/payments", title: "Kill switch", needs: "withdrawals:read", menu: "Money", load: () => import("./payments.js") },
  { path: "/strays", title: "Stray payments", needs: "addresses:read", menu: "Money", load: () => import("./strays.js") },
  { path: "/strays/:id", title: "Stray payment", needs: "addresses:read", load: () => import("./stray.js") },
  { path: "/grey-list", title: "Grey list", needs: "addresses:read", menu: "Screening", load: () => import("./grey_list.js") },
  { path: "/solvency", title: "Solvency", needs: "networks:read", menu: "Treasury", load: () => import("./solvency.js") },
  { path: "/wallets", title: "Service wallets", needs: "addresses:read", menu: "Treasury", load: () => import("./wallets.js") },
  { path: "/collections", title: "Collections", needs: "addresses:read", menu: "Treasury",
    load: () => import("./collections.js") },
  { path: "/collections/:id", title: "Collection", needs: "addresses:read", load: () => import("./collection.js") },
  { path: "/moves", title: "Moves under way", needs: "transactions:read", menu: "Treasury", load: () => import("./moves.js") },
  { path: "/staking", title: "Staking", needs: "networks:read", menu: "Treasury", load: () => import("./staking.js") },
  { path: "/merchants", title: "Merchants", needs: "merchant:read", menu: "Merchants", load: () => import("./merchants.js") },
  { path: "/merchants/:id", title: "Merchant", needs: "merchant:read", load: () => import("./merchant.js") },
  { path: "/networks", title: "Networks", needs: "networks:read", menu: "Service", load: () => import("./networks.js") },
  { path: "/networks/:network", title: "Network", needs: "networks:read", load: () => import("./network.js") },
  { path: "/coins", title: "Coins", needs: "coins:read", menu: "Service", load: () => import("./coins.js") },
  { path: "/coins/new", title: "Register a coin", needs: ["coins:write", "networks:read"],
    load: () => import("./new_coin.js") },
  { path: "/coins/:network/:coin", title: "Coin", needs: "coins:read", load: () => import("./coin.js") },
  { path: "/settings/keys", title: "API keys", needs: "keys:read", menu: "Settings", load: () => import("../keys/list.js") },
  { path: "/settings/keys/new", title: "Generate New Key", needs: "keys:write", load: () => import("../keys/new.js") },
  { path: "/settings/keys/:id", title: "API key", needs: "keys:read", load: () => import("../keys/details.js") },
  { path: "/activity", title: "Activity", needs: "keys:read", menu: "Settings", load: () => import("./activity.js") },
];
