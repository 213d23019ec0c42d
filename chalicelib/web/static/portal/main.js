// The merchant's portal.
import { start } from "../app/shell.js";
import { groups, pages } from "./pages.js";

start({ name: "Portal", pages, groups, search: "/search" });
