// The merchant's portal.
import { start } from "../app/shell.js";
import { Above } from "./above.js";
import { groups, pages } from "./pages.js";

start({ name: "Portal", pages, groups, search: "/search", above: Above });
