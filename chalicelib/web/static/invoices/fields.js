// The fields of a new invoice's form beside its price, and what the API takes for all of them.
import { termFields } from "./words.js";
import { priced } from "./price_fields.js";

const more = (values) => Boolean(values.more);

export const DETAILS = [
  { name: "description", label: "What it is for", kind: "text", most: 1000, hint: "The payer sees it." },
  { name: "externalId", label: "Your own id", kind: "text", most: 255,
    hint: "Such as an order number. You find the invoice by it, and each counts once.", example: "order-7" },
  { name: "minutes", label: "Minutes until it expires", kind: "number",
    hint: "Empty: as your invoice settings say.", example: "60" },
  { name: "more", label: "Links for the payer, webhook, rules, metadata", kind: "check" },
  { name: "redirectUrl", label: "Where to send the payer afterwards", kind: "text",
    example: "https://shop.example/thanks", when: more },
  { name: "cancelUrl", label: "Where to send a payer who does not pay", kind: "text",
    example: "https://shop.example/basket", when: more },
  { name: "webhookUrl", label: "Webhook of this invoice alone", kind: "text",
    example: "https://shop.example/hook", when: more },
  {
    name: "webhookSecret", label: "Its signing secret", kind: "secret", hint: "Empty: one is made, and shown once.",
    when: (values) => more(values) && values.webhookUrl,
  },
  ...termFields({}, more),
  { name: "metadata", label: "Metadata (JSON)", kind: "json", example: '{"order": "A-17"}',
  hint: "For you alone: in answers and events, on no public page.", when: more },
];

/** The body of the request. */
export function invoiceOf(values) {
  const { minutes, more: _, ...rest } = priced(values);
  return minutes === undefined ? rest : { ...rest, expiresIn: Math.round(minutes * 60) };
}
