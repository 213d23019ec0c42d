// What is drawn over each page of the portal.
import { html } from "../app/ui.js";
import { ExportProgress } from "./exports.js";

export const Above = () => html`<${ExportProgress} />`;
