// What a person takes along, and what is lost with the tab.
import { useEffect } from "./ui.js";

/** For how long the browser may take to read a file that is handed to it, in milliseconds. */
const READ_WITHIN = 60_000;

/** Hand a file to the browser, which saves it as `name`. */
export function saveFile(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), READ_WITHIN);
}

/** The browser asks before the tab is closed or loaded again, until the function that this answers is called. */
export function warnOfLeaving() {
  const warn = (event) => {
    event.preventDefault();
    event.returnValue = "";
  };
  addEventListener("beforeunload", warn);
  return () => removeEventListener("beforeunload", warn);
}

/** The same as long as the component is drawn and `when` holds. */
export function useLeaveWarning(when = true) {
  useEffect(() => (when ? warnOfLeaving() : undefined), [when]);
}
