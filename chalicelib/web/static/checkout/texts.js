// Texts of the checkout and claim pages: times in the reader's zone, clocks, and what a search matches. Without a script times
// stand in the page in UTC, which is their tooltip with one.

const FORMS = {
  moment: { dateStyle: "medium", timeStyle: "short" },
  clock: { hour: "2-digit", minute: "2-digit" },
};

/** Rewrites each `<time data-form>` below `root` once. `lang` is the page's language. */
export function localTimes(root, lang) {
  for (const each of root.querySelectorAll("time[data-form]")) {
    const at = new Date(each.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    each.title = each.textContent;
    each.textContent = new Intl.DateTimeFormat(lang, FORMS[each.dataset.form]).format(at);
    delete each.dataset.form;
  }
}

/** Seconds as a clock: 75 → "01:15", 3675 → "1:01:15". */
export function clock(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  return `${hours ? `${hours}:` : ""}${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** Whether each word of `query` is in `text`, which is lower case. */
export function matches(text, query) {
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
