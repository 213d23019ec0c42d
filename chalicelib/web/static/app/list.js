// Lists: filter, sort and page are parameters of the API, and stand in the address, so that a view can be shared.
import { coverage } from "./coverage.js";
import { amount, countOf } from "./format.js";
import { Button, Empty, Failure, Loading } from "./parts.js";
import { Link, go, parse, useRoute } from "./router.js";
import { useGet } from "./use.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "./ui.js";

const SIZES = [20, 50, 100];
const DEEPEST = 10_000;

/** Name of a filter in the address: `created_at.gte`, or the field's own where it is compared by equality. */
const named = (filter, op = filter.op) => (op ? `${filter.name}.${op}` : filter.name);
const parameter = (filter, op = filter.op) => (op ? `${filter.name}[${op}]` : filter.name);

/** The parameters of the API for what the address says. */
export function wanted(route, filters, fixed, plain) {
  const query = { ...fixed };
  for (const filter of filters) {
    const ops = filter.kind === "time" || filter.kind === "range" ? ["gte", "lte"] : [filter.op];
    for (const op of ops) {
      const value = route[named(filter, op)];
      if (value) query[parameter(filter, op)] = filter.kind === "time" && !value.includes("T")
        ? value : value.trim?.() ?? value;
    }
  }
  const { sort, order, cursor } = route;
  if (sort) Object.assign(query, { sort, order });
  if (plain) return query;
  query.limit = SIZES.includes(Number(route.limit)) ? Number(route.limit) : SIZES[0];
  if (cursor) query.cursor = cursor;
  else if (Number(route.page) > 1) query.page = Number(route.page);
  return query;
}

/**
 * A list of what lies at `path`. `columns`: `{ name, label, show(row), sort, align }`, where `sort` is the API's name to sort
 * by (true: the column's own). `filters`: `{ name, label, kind: "select" | "text" | "time" | "range", options, op }`. `to(row)`
 * is the page of a row: the first column leads there, and has no button of its own (`Short`, not `Code`); `query` are
 * parameters that never change; `empty` is shown where nothing is there at all; `every` seconds it is asked for again; `plain`:
 * the API answers all rows at once, and the pages are made here. `exportAs({ path, query, page })` draws the way to save what
 * is shown.
 */
export function List({
  path, columns, filters = [], to, empty, rowKey = (row) => row.id, actions, query: fixed = {}, exportAs, every = 0,
  plain = false, label,
}) {
  const { path: here, query: route } = useRoute();
  const query = wanted(route, filters, fixed, plain);
  const { data, page: told, error, loading, again } = useGet(path, query, { every });
  // While the next rows are on their way the last ones stay, so that nothing jumps: of the same list, never of another one.
  const last = useRef({ path, data: null });
  if (data !== null || error) last.current = { path, data };
  const drawn = data ?? (last.current.path === path ? last.current.data : null);
  const { rows, page } = plain
    ? paged(Array.isArray(drawn) ? drawn : [], route) : { rows: Array.isArray(drawn) ? drawn : [], page: told };
  const filtered = filters.some((filter) => ["", "gte", "lte", filter.op].some((op) => route[named(filter, op || undefined)]));
  // From the address as it is then: a filter that was typed counts a moment later than one that was chosen.
  const move = (change, replace = false) =>
    go(here, { ...parse(location.hash).query, page: undefined, cursor: undefined, ...change }, { replace });
  return html`<div class="list">
    <div class="bar">
      ${filters.length > 0
        && html`<${Filters} key=${here} filters=${filters} route=${route} move=${move} filtered=${filtered} />`}
      <div class="actions">${actions}${exportAs?.({ path, query, page })}</div></div>
    ${error && html`<${Failure} error=${error} again=${again} />`}
    ${drawn === null && loading && html`<${Loading} />`}
    ${data !== null && rows.length === 0 && (filtered
      ? html`<${Empty} title="Nothing matches" actions=${html`<${Link} to=${here} class="button quiet">Show all<//>`}>Change the
        filters, or show everything.<//>`
      : empty ?? html`<${Empty} />`)}
    ${rows.length > 0
      && html`<${Table} label=${label} columns=${columns} rows=${rows} to=${to} rowKey=${rowKey} route=${route} move=${move}
        busy=${loading} />`}
    ${page?.covers_from && html`<p class="soft">${coverage(page.covers_from)}</p>`}
    ${page && (rows.length > 0 || route.page || route.cursor)
      && html`<${Pager} page=${page} route=${route} move=${move} here=${here} shown=${rows.length} />`}
  </div>`;
}

/** One page of rows that are all here, as the address says; without a page where they fit on one. */
export function paged(all, route) {
  const limit = SIZES.includes(Number(route.limit)) ? Number(route.limit) : SIZES.at(-1);
  const pages = Math.max(1, Math.ceil(all.length / limit));
  if (pages === 1 && !route.limit) return { rows: all, page: null };
  const now = Math.min(pages, Math.max(1, Math.trunc(Number(route.page)) || 1));
  const page = { page: now, limit, total: all.length, pages, has_next: now < pages, has_prev: now > 1, next_cursor: null };
  return { rows: all.slice((now - 1) * limit, now * limit), page };
}

/** A table of rows that are there already. On a phone each row becomes a card. */
export function Table({ columns, rows, to, rowKey = (row) => row.id, route = {}, move, busy = false, label }) {
  const box = useRef(null);
  // What is wider than the page is scrolled by keys, too: then, and only then, it takes the focus.
  useLayoutEffect(() => {
    const { current } = box;
    if (current.scrollWidth > current.clientWidth) current.setAttribute("tabindex", "0");
    else current.removeAttribute("tabindex");
  });
  return html`<div class="scroll" ref=${box}><table role="table" aria-label=${label} aria-busy=${busy ? "true" : null}>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<${Heading} key=${column.name} column=${column} route=${route} move=${move} />`)}</tr>
        </thead>
    <tbody role="rowgroup">${rows.map((row) => html`<tr role="row" key=${rowKey(row)}>${columns.map((column, place) => {
      const shown = column.show ? column.show(row) : row[column.name];
      const target = place === 0 && to?.(row);
      return html`<td role="cell" key=${column.name} data-label=${column.label} class=${column.align ?? ""} dir="auto">${
        target ? html`<${Link} to=${target}>${shown}<//>` : shown}</td>`;
    })}</tr>`)}</tbody>
  </table></div>`;
}

function Heading({ column, route, move }) {
  const by = column.sort === true ? column.name : column.sort;
  if (!by || !move) return html`<th role="columnheader" scope="col" class=${column.align ?? ""}>${column.label}</th>`;
  const order = route.sort === by ? route.order ?? "desc" : null;
  const sorted = { asc: "ascending", desc: "descending" }[order] ?? "none";
  const next = order === "desc" ? "asc" : "desc";
  return html`<th role="columnheader" scope="col" class=${column.align ?? ""} aria-sort=${sorted}>
    <button type="button" onClick=${() => move({ sort: by, order: next })}>${column.label}
      <span aria-hidden="true">${{ asc: " ↑", desc: " ↓" }[order] ?? ""}</span></button></th>`;
}

/** The filters: what is chosen counts at once, what is typed after a moment. */
function Filters({ filters, route, move, filtered }) {
  const prefix = useId();
  // On a phone they are folded away, unless one of them counts.
  const [open] = useState(filtered || matchMedia("(min-width: 621px)").matches);
  return html`<details class="fold" open=${open}><summary>Filters</summary>
    <form class="filters" role="search" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    ${filters.map((filter) => (filter.kind === "time" || filter.kind === "range"
      ? ["gte", "lte"].map((op) => html`<${Filter} key=${filter.name + op} id=${`${prefix}-${filter.name}-${op}`}
        filter=${filter} op=${op} route=${route} move=${move} />`)
      : html`<${Filter} key=${filter.name} id=${`${prefix}-${filter.name}`} filter=${filter} op=${filter.op} route=${route}
        move=${move} />`))}
    ${filtered && html`<${Button} tone="quiet"
      onClick=${() =>
        move(Object.fromEntries(filters.flatMap((filter) =>
          [undefined, "gte", "lte", filter.op].map((op) => [named(filter, op), undefined]))))}>Clear<//>`}
  </form></details>`;
}

function Filter({ id, filter, op, route, move }) {
  const name = named(filter, op);
  const current = route[name] ?? "";
  const [typed, type] = useState(current);
  const timer = useRef(null);
  useEffect(() => type(current), [current]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const put = (value) => {
    clearTimeout(timer.current);
    if (value !== current) move({ [name]: value || undefined }, true);
  };
  const label = { gte: `${filter.label} from`, lte: `${filter.label} to` }[op] ?? filter.label;
  if (filter.kind === "select") {
    const options = filter.options.map((each) => (Array.isArray(each) ? each : [each, each]));
    return html`<div class="field"><label for=${id}>${label}</label>
      <select id=${id} value=${current} onChange=${(event) => put(event.currentTarget.value)}>
      <option value="">All</option>
      ${options.map(([value, text]) => html`<option value=${value} selected=${value === current}>${text}</option>`)}</select>
      </div>`;
  }
  const change = (event) => {
    const value = event.currentTarget.value;
    type(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => put(value.trim()), 500);
  };
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} type=${filter.kind === "time" ? "date" : "search"} value=${typed}
    inputmode=${filter.kind === "range" ? "decimal" : null} autocomplete="off" spellcheck=${false} onInput=${change}
    onKeyDown=${(event) => event.key === "Enter" && put(event.currentTarget.value.trim())} /></div>`;
}

function Pager({ page, route, move, here, shown }) {
  const id = useId();
  const on = () => {
    const behind = page.page !== null && (page.page + 1) * page.limit <= DEEPEST;
    move(behind ? { page: page.page + 1 } : { cursor: page.next_cursor });
  };
  const total = page.total === null
    ? `${countOf(shown, "row")} on this page` : `${page.total_capped ? "more than " : ""}${countOf(page.total, "row")}`;
  const where = page.page === null ? "" : `Page ${amount(page.page)}${page.pages ? ` of ${amount(page.pages)}` : ""} · `;
  return html`<nav class="pager" aria-label="Pages">
    <p role="status">${where}${total}</p>
    <div class="field"><label for=${id}>Rows</label>
      <select id=${id} value=${String(page.limit)} onChange=${(event) => move({ limit: event.currentTarget.value })}>
      ${SIZES.map((size) => html`<option value=${size} selected=${size === page.limit}>${size}</option>`)}</select></div>
    <div class="actions">
      ${route.cursor && html`<${Link} to=${here} query=${{ ...route, cursor: undefined }} class="button quiet">First page<//>`}
      ${page.has_prev && page.page > 1
        && html`<${Button} tone="quiet" onClick=${() => move({ page: page.page - 1 })}>Previous<//>`}
      ${page.has_next && html`<${Button} tone="quiet" onClick=${on}>Next<//>`}
    </div>
  </nav>`;
}
