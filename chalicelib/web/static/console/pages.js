// The console's pages. Each is loaded when it is first gone to; what an admin key may not do is not shown.
/** Headings of the menu, in their order. */
export const groups = ["", "Money", "Screening", "Treasury", "Merchants", "Service"];

/** `needs`: the permissions without which a page is of no use; `menu`: its heading; without one it is reached from other pages. */
export const pages = [
  { path: "/", title: "Networks", needs: "networks:read", menu: "", load: () => import("./overview.js") },
];
