// The portal's pages. Each is loaded when it is first gone to; what a key may not do is not shown.
/** Headings of the menu, in their order. */
export const groups = ["", "Money in", "Money out", "Developers", "Settings", "Sandbox"];

/** `needs`: the permissions without which a page is of no use; `menu`: its heading; without one it is reached from other pages. */
export const pages = [
  { path: "/", title: "Overview", menu: "", load: () => import("./overview.js") },
  { path: "/search", title: "Search", load: () => import("./search.js") },
];
