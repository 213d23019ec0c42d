// CSV as spreadsheets read it (RFC 4180), with cells that no spreadsheet takes for a formula.
const FORMULA = /^\s*[=+\-@\t\r\n＝＋－＠]/;
/** Where a spreadsheet of another country begins a new cell within ours: there the separator is a semicolon or a tab, and our
 *  quotes stand in the middle of a cell. */
const WITHIN = /([;\t\r\n][\s"]*)(?=[=+\-@＝＋－＠])/g;

/** A cell's text: what begins like a formula gets an apostrophe in front, as OWASP advises. */
export function harmless(value) {
  const text = (value === null || value === undefined ? "" : String(value)).replace(WITHIN, "$1'");
  return FORMULA.test(text) ? `'${text}` : text;
}

function cell(value) {
  const text = harmless(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as CSV lines, each ended by CRLF. `columns` are `{ label, value(row) }`. */
export const csvLines = (columns, rows) =>
  rows.map((row) => `${columns.map((column) => cell(column.value(row))).join(",")}\r\n`).join("");

/** The line of headings. */
export const csvHead = (columns) => `${columns.map((column) => cell(column.label)).join(",")}\r\n`;

/** A whole file. */
export const toCsv = (columns, rows) => csvHead(columns) + csvLines(columns, rows);

/**
 * The rows of a CSV text as lists of cells; empty lines are left out. The separator is the comma, or the semicolon or tab where
 * the first line has more of them. Raises SyntaxError, with the line, for a quote that is never closed.
 */
export function parseCsv(text) {
  const source = String(text).replace(/^\uFEFF/, "");
  const separator = separatorOf(source);
  const rows = [];
  let row = [];
  let value = "";
  let quoted = false;
  let line = 1;
  let opened = 1;
  const end = () => {
    row.push(value);
    value = "";
  };
  const endRow = () => {
    end();
    if (row.length > 1 || row[0].trim() !== "") rows.push(row);
    row = [];
  };
  for (let at = 0; at < source.length; at += 1) {
    const here = source[at];
    if (here === "\n") line += 1;
    if (quoted) {
      if (here !== '"') value += here;
      else if (source[at + 1] === '"') value += source[(at += 1)];
      else quoted = false;
    } else if (here === '"' && value === "") {
      quoted = true;
      opened = line;
    } else if (here === separator) end();
    else if (here === "\n") endRow();
    else if (here !== "\r" || source[at + 1] !== "\n") value += here;
  }
  if (quoted) throw new SyntaxError(`Line ${opened}: a quote is opened and never closed`);
  if (value !== "" || row.length > 0) endRow();
  return rows;
}

function separatorOf(source) {
  const first = source.slice(0, source.search(/[\r\n]|$/));
  const count = (mark) => first.split(mark).length;
  return [",", ";", "\t"].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
}
