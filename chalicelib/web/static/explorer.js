// Starts Swagger UI on the document beside this page, and keeps the key: in this tab's session and nowhere else.
"use strict";
(() => {
  const STORED = "gateway.key";
  const field = document.getElementById("key");
  const state = document.getElementById("key-state");
  const forget = document.getElementById("forget");

  const read = () => {
    try {
      return sessionStorage.getItem(STORED) || "";
    } catch {
      return ""; // storage is switched off: the key lives in memory
    }
  };
  const keep = (key) => {
    try {
      if (key) sessionStorage.setItem(STORED, key);
      else sessionStorage.removeItem(STORED);
    } catch {
      // as above
    }
  };
  const show = (key) => {
    state.textContent = key ? `Using ${key.slice(0, 12)}…` : "No key";
    state.classList.toggle("set", Boolean(key));
    forget.hidden = !key;
    field.value = "";
  };
  const use = (key) => {
    if (key) ui.preauthorizeApiKey("apiKey", key);
    else ui.authActions.logout(["apiKey"]);
    keep(key);
    show(key);
  };

  // All references of the document point into it, and none leads back to itself (a test holds that). Swagger UI's own resolver
  // goes through the whole document at each operation that is opened, which takes seconds.
  const target = (root, reference) =>
    reference
      .slice(2)
      .split("/")
      .reduce((node, part) => node[part.replaceAll("~1", "/").replaceAll("~0", "~")], root);
  const resolved = (root, node) => {
    if (Array.isArray(node)) return node.map((each) => resolved(root, each));
    if (node === null || typeof node !== "object") return node;
    const { $ref: reference, ...own } = node;
    const whole = typeof reference === "string" ? { ...target(root, reference), ...own } : node;
    if (typeof whole.$ref === "string") return resolved(root, whole);
    return Object.fromEntries(Object.entries(whole).map(([name, value]) => [name, resolved(root, value)]));
  };
  const resolveSubtree = async (root, path) => ({
    spec: resolved(root, path.reduce((node, part) => node?.[part], root)) ?? null,
    errors: [],
  });

  const ui = SwaggerUIBundle({
    url: new URL("openapi.json", document.baseURI).href,
    dom_id: "#explorer",
    layout: "BaseLayout",
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [() => ({ fn: { resolveSubtree } })],
    deepLinking: false, // with a <base> its links would lead away from the page
    displayRequestDuration: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    filter: true,
    persistAuthorization: false, // it would write to localStorage
    tryItOutEnabled: true,
    validatorUrl: null,
    syntaxHighlight: { theme: "idea" },
    onComplete: () => {
      const box = document.querySelector(".operation-filter-input");
      if (box) box.placeholder = "Filter by group, such as Invoices";
      const key = read();
      if (key) use(key);
      document.body.dataset.ready = "true";
    },
  });

  document.getElementById("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = field.value.trim();
    if (key) use(key);
  });
  forget.addEventListener("click", () => use(""));
})();
