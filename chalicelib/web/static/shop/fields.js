// The fields of a shop's looks, and what the API takes for them.
export const USUAL = "#0b6e4f";
export const COLOR = /^#[0-9a-f]{6}$/i;

/** The form's fields with the shop of now. */
export const shopFields = (shop) => [
  { name: "name", label: "Name", kind: "text", value: shop.name, most: 100, hint: "Stands at the top of the pages." },
  { name: "color", label: "Colour", kind: "text", mono: true, value: shop.color, example: USUAL,
    hint: `Of buttons and bars, as #rrggbb. Empty: the usual one, ${USUAL}.` },
  {
    name: "frameAncestors", label: "Sites that may show the pages in a frame", kind: "list",
    value: shop.frameAncestors, rows: 3,
    hint: "One origin in each line, such as https://shop.example. Empty: nobody may. List your own sites alone: who frames a "
      + "page can lay something over it.",
  },
];

/** What is sent: the fields that are another now; null for one that was taken away. */
export function shopChange(shop, values) {
  const body = {};
  for (const name of ["name", "color"]) {
    const value = values[name] ?? null;
    if (value !== (shop[name] ?? null)) body[name] = value;
  }
  const frames = values.frameAncestors ?? [];
  if (JSON.stringify(frames) !== JSON.stringify(shop.frameAncestors ?? [])) body.frameAncestors = frames;
  return body;
}

/** Black or white, whichever reads better on a colour (WCAG 2.2, relative luminance). */
export function readable(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  return 1.05 / light >= light / 0.05 ? "#ffffff" : "#000000";
}
