// The claim page needs no script but this one, which shows its times in the reader's zone.
import { localTimes } from "./texts.js";

localTimes(document, document.documentElement.lang);
