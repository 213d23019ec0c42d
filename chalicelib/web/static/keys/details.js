// One API key: what it may do, and changing, rotating and revoking it.
import { at, del, post, put } from "../app/api.js";
import { Ask, Dialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { amount, shorten } from "../app/format.js";
import { Button, Card, Code, Empty, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { inWords } from "../app/permissions.js";
import { Link } from "../app/router.js";
import { can, refresh, signIn, signOut } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { EVERY_ENVIRONMENT } from "./environments.js";
import { Kind } from "./list.js";
import { show } from "./shown.js";
import { Terms } from "./terms.js";
import { changed, dangers, toType } from "./words.js";

const OVERLAPS = [["0", "At once"], ["3600", "After 1 hour"], ["86400", "After 1 day"], ["604800", "After 7 days"]];

/** The page of a key. */
export default function Key({ params, me }) {
  // The list alone tells when a key was last used.
  const { data, error, loading, again, put: keep } = useGet("/api-keys",
    { ...EVERY_ENVIRONMENT, key_id: params.id }, { every: 60 });
  const key = data?.[0];
  if (!key) {
    const all = html`<${Link} to="/settings/keys" class="button quiet">All keys<//>`;
    return html`<${Page} title="API key">
      <${Failure} error=${error} again=${again} />${loading && html`<${Loading} />`}
      ${data && html`<${Empty} title="No such key" actions=${all}>It may be another merchant's.
        A test key sees no production keys.<//>`}<//>`;
  }
  return html`<${Found} record=${key} me=${me} again=${again} keep=${keep} error=${error} />`;
}

function Found({ record, me, again, keep, error }) {
  const [doing, does] = useState(null);
  const [said, say] = useState(null);
  const own = record.key_id === me.key_id;
  const usable = record.status === "active" && !record.replaced_by && can("keys:write");
  // The answer to a change is the key as it is now, without what the list alone tells.
  const finish = (words, now) => {
    does(null);
    say(words);
    if (now) keep([{ ...record, ...now }]);
    else again();
  };
  const actions = usable && doing !== "change" && html`<${Button} tone="quiet" onClick=${() => does("change")}>Change<//>
    <${Button} tone="quiet" onClick=${() => does("rotate")}>Rotate<//>
    <${Button} tone="danger" onClick=${() => does("revoke")}>Revoke<//>`;
  return html`<${Page} title=${record.name} actions=${actions}>
    ${said && html`<${Notice} tone="good">${said}<//>`}
    ${record.status === "active" && record.replaced_by && html`<${Notice} tone="warn" title="This key was replaced">
      <p>Put <${KeyLink} id=${record.replaced_by} /> in its place: this one ends${" "}
        <${Time} at=${record.expires_at} ago />.</p><//>`}
    ${own && html`<${Notice}>You are signed in with this key.<//>`}
    <${Failure} error=${error} again=${again} />
    ${doing === "change"
      ? html`<${Card} title="Change this key">
          <${Change} record=${record} me=${me} finish=${finish} leave=${() => does(null)} /><//>`
      : html`<${Shown} record=${record} />`}
    ${doing === "rotate" && html`<${Rotate} record=${record} me=${me} finish=${finish} leave=${() => does(null)} />`}
    ${doing === "revoke" && html`<${Revoke} record=${record} own=${own} finish=${finish} leave=${() => does(null)} />`}
  <//>`;
}

const KeyLink = ({ id }) => html`<${Link} to=${at`/settings/keys/${id}`} title=${id}><code>${shorten(id, 12, 6)}</code><//>`;

function Shown({ record }) {
  const { ip_whitelist: addresses, rate_limit: minute, daily_limit: daily } = record.restrictions;
  const warned = record.status === "active" ? dangers(record.permissions, record.type) : [];
  const query = { key_id: record.key_id, type: record.type === "test" ? "test" : undefined };
  const did = html`<${Link} to="/settings/activity" query=${query} class="button quiet">What it did<//>`;
  return html`<${Card} title="Key" actions=${did}>
      <${Facts} rows=${[
        ["Status", html`<${Status} value=${record.status} />`],
        ["Begins with", html`<code>${record.key_prefix}…</code>`],
        ["Id", html`<${Code} value=${record.key_id} />`],
        ["Environment", html`<${Kind} of=${record} />`],
        ["Last used", record.last_used_at ? html`<${Time} at=${record.last_used_at} ago />` : "Never"],
        ["Made", html`<${Time} at=${record.created_at} />`],
        ["Made by", record.created_by ? html`<${KeyLink} id=${record.created_by} />` : "The operator"],
        ["Expires", record.expires_at ? html`<${Time} at=${record.expires_at} ago />` : "Never"],
        ["Revoked", record.revoked_at && html`<${Time} at=${record.revoked_at} />`],
        ["Replaced by", record.replaced_by && html`<${KeyLink} id=${record.replaced_by} />`],
        ["Used from", addresses.length === 0 ? "Any address" : addresses.join(", ")],
        ["Requests", `${amount(minute)} a minute, ${amount(daily)} a day`],
      ]} /><//>
    <${Card} title="It may"><ul class="facts-list">${record.permissions.map(
      (name) => html`<li key=${name}>${inWords(name)} <code class="soft">${name}</code></li>`)}</ul>
      ${record.permissions.length === 0 && html`<p>Nothing.</p>`}
      ${warned.length > 0 && html`<p class="fine">${warned.join(" ")}</p>`}<//>`;
}

function Change({ record, me, finish, leave }) {
  const submit = async (values) => {
    const body = changed(values, record);
    if (Object.keys(body).length === 0) return ["Nothing was changed.", record];
    const { data } = await put(at`/api-keys/${record.key_id}`, body);
    if (record.key_id === me.key_id) await refresh();
    return ["Changed. It counts from the next request on.", data];
  };
  return html`<${Terms} me=${me} known=${record} action="Save changes" submit=${submit} cancel=${leave}
    done=${([words, now]) => finish(words, now)} />`;
}

function Rotate({ record, me, finish, leave }) {
  const own = record.key_id === me.key_id;
  const submit = async ({ overlap }, { key }) => {
    const { data } = await post(at`/api-keys/${record.key_id}/rotate`, { overlap: Number(overlap) }, { key });
    // Shown before anything else can fail: there is no second look at it.
    show(data, me.key_id, data.key_id);
    if (own) await signIn(data.key);
    return data;
  };
  const fields = [{
    name: "overlap", label: "The old key ends", kind: "select", required: true, options: OVERLAPS, value: "86400",
    hint: "Time to put the new key in its place. If the old one is in wrong hands, end it at once.",
  }];
  return html`<${Dialog} title="Rotate this key" close=${leave}>
    <p>A new key with the same terms takes the place of
      ${" "}<strong dir="auto">${record.name}</strong>.${own && " You go on with the new one here."}</p>
    <${Form} fields=${fields} action="Make the new key" submit=${submit} cancel=${leave}
      done=${() => finish("Rotated. Put the new key in the old one's place.")} />
  <//>`;
}

function Revoke({ record, own, finish, leave }) {
  const run = () => del(at`/api-keys/${record.key_id}`).then(({ data }) => data);
  const close = (done) => {
    if (!done) leave();
    else if (own) signOut("You revoked the key that you were signed in with.");
    else finish("Revoked. Requests with it are refused from now on.", done);
  };
  const words = html`<p>Programs that use it are refused from the next request on. This can not be undone.</p>
    ${own && html`<p><strong>You are signed in with this key, and will be signed out.</strong></p>`}`;
  return html`<${Ask} title="Revoke this key" words=${words} action="Revoke key" tone="danger" typed=${toType(record)}
    run=${run} close=${close} />`;
}
