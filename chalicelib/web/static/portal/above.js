// What is drawn over each page of the portal.
import { html } from "../app/ui.js";
import { SandboxBanner } from "../sandbox/banner.js";
import { ExportProgress } from "../app/exports.js";

export const Above = () => html`<${SandboxBanner} /><${ExportProgress} />`;
