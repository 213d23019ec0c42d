// One event, as it was told.
import { at } from "../app/api.js";
import { Card, Code, Copy, Facts, Failure, Loading, Page, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { eventWords } from "../webhooks/words.js";
import { nameOf, placeOf } from "./places.js";

/** The page of an event. */
export default function Event({ params }) {
  const { data: event, error, loading, again } = useGet(at`/events/${params.id}`);
  const place = placeOf(event, can);
  const text = event && JSON.stringify(event.data, null, 2);
  return html`<${Page} title=${event ? event.event : "Event"}>
    <p class="fine"><${Link} to="/events">All events<//></p>
    <${Failure} error=${error} again=${again} />
    ${loading && !event && html`<${Loading} />`}
    ${event && html`
      <${Card}><${Facts} rows=${[
        ["In words", eventWords(event.event)],
        ["About", place ? html`<${Link} to=${place}>${nameOf(event)}<//>` : nameOf(event)],
        ["When", html`<${Time} at=${event.timestamp} />`],
        ["Number among the events of its object", event.sequence],
        ["Id", html`<${Code} value=${event.id} what="event id" />`],
      ]} /><//>
      <${Card} title="The record at that moment" actions=${html`<${Copy} value=${text} />`}><pre
        tabindex="0">${text}</pre><//>`}
  <//>`;
}
