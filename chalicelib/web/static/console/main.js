// The operator's console.
import { start } from "../app/shell.js";
import { groups, pages } from "./pages.js";

const only = (me) => (me.level === "admin"
  ? null : "This is the operator's console: it takes admin keys alone. Your key belongs to the portal.");

start({ name: "Console", pages, groups, only });
