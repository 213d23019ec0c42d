// The portal's pages. Each is loaded when it is first gone to; what a key may not do is not shown.
/** Headings of the menu, in their order. */
export const groups = ["", "Money in", "Money out", "Developers", "Settings", "Sandbox"];

/** `needs`: the permissions without which a page is of no use; `menu`: its heading; without one it is reached from other pages. */
export const pages = [
  { path: "/", title: "Overview", menu: "", load: () => import("./overview.js") },
  { path: "/search", title: "Search", load: () => import("./search.js") },
  { path: "/invoices", title: "Invoices", needs: "invoices:read", menu: "Money in", load: () => import("../invoices/list.js") },
  { path: "/invoices/new", title: "New invoice", needs: "invoices:create", load: () => import("../invoices/new.js") },
  { path: "/invoices/:id", title: "Invoice", needs: "invoices:read", load: () => import("../invoices/details.js") },
  { path: "/invoices/:id/refund", title: "Refund", needs: ["invoices:read", "withdrawals:create"], load: () => import("../invoices/refund.js") },
  { path: "/payment-links", title: "Payment links", needs: "invoices:read", menu: "Money in", load: () => import("../payment_links/list.js") },
  { path: "/payment-links/new", title: "New payment link", needs: "invoices:create", load: () => import("../payment_links/new.js") },
  { path: "/payment-links/:id", title: "Payment link", needs: "invoices:read", load: () => import("../payment_links/details.js") },
  { path: "/settings/invoices", title: "Invoice settings", needs: "invoices:read", menu: "Settings", load: () => import("../invoices/settings.js") },
  { path: "/settings/checkout", title: "Checkout settings", needs: "merchant:read", menu: "Settings", load: () => import("../shop/settings.js") },
  { path: "/withdrawals", title: "Withdrawals", needs: "withdrawals:read", menu: "Money out", load: () => import("./withdrawals.js") },
  { path: "/withdrawals/new", title: "New withdrawal", needs: "withdrawals:create", load: () => import("./withdrawal-new.js") },
  { path: "/withdrawals/batch", title: "Pay from a file", needs: ["withdrawals:create", "addresses:read", "coins:read"],
    load: () => import("./payouts.js") },
  { path: "/withdrawals/:id", title: "Withdrawal", needs: "withdrawals:read", load: () => import("./withdrawal.js") },
  { path: "/approvals", title: "Approvals", needs: "withdrawals:read", menu: "Money out", load: () => import("./approvals.js") },
  { path: "/refunds", title: "Refunds", needs: "withdrawals:read", menu: "Money out", load: () => import("./refunds.js") },
  { path: "/refunds/:id", title: "Refund", needs: "withdrawals:read", load: () => import("./refunds.js") },
  { path: "/claim-links", title: "Claim links", needs: "withdrawals:read", menu: "Money out", load: () => import("./claim-links.js") },
  { path: "/claim-links/:id", title: "Claim link", needs: "withdrawals:read", load: () => import("./claim-links.js") },
  { path: "/whitelist", title: "Whitelist", needs: "whitelist:read", menu: "Money out", load: () => import("./whitelist.js") },
  { path: "/signers", title: "Signers", needs: "merchant:read", menu: "Settings", load: () => import("./signers.js") },
];
