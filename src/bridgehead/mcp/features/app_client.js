// The page's side of MCP Apps (2026-01-26): JSON-RPC with the host over postMessage.
const host = (() => {
  const waiting = new Map();
  const timers = new Set();
  let last = 0;
  let handlers = {};
  let abilities = {};
  let context = {};
  let open = true;

  const post = (message) => window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const notify = (method, params = {}) => post({ method, params });
  const ask = (method, params = {}, seconds = 90) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      const timer = setTimeout(() => settle(id, { error: { message: "The host did not answer in time." } }), seconds * 1000);
      waiting.set(id, { resolve, reject, timer });
      post({ id, method, params });
    });

  function settle(id, { result, error }) {
    const asked = waiting.get(id);
    if (!asked) return;
    waiting.delete(id);
    clearTimeout(asked.timer);
    if (error) asked.reject(new Error(error.message || "The host refused."));
    else asked.resolve(result);
  }

  function adopt(news) {
    context = { ...context, ...news };
    const root = document.documentElement;
    if (news.theme) root.dataset.theme = news.theme;
    if (news.displayMode) root.dataset.mode = news.displayMode;
    for (const [name, value] of Object.entries(news.styles?.variables || {}))
      if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
    const inset = news.safeAreaInsets;
    if (inset) document.body.style.padding = ["top", "right", "bottom", "left"].map((side) => `${inset[side] || 0}px`).join(" ");
    offerModes();
    handlers.context?.(context);
  }

  // A button with the id "mode" switches between inline and full screen, where the host has both.
  function offerModes() {
    const button = document.getElementById("mode");
    if (!button) return;
    const full = context.displayMode === "fullscreen";
    const other = full ? "inline" : "fullscreen";
    button.hidden = !(context.availableDisplayModes || []).includes(other);
    button.title = full ? "Leave full screen" : "Full screen";
    button.setAttribute("aria-label", button.title);
    button.onclick = async () => {
      const answer = await ask("ui/request-display-mode", { mode: other }).catch(() => ({}));
      if (answer.mode) adopt({ displayMode: answer.mode });
    };
  }

  function end() {
    open = false;
    timers.forEach(clearTimeout);
    handlers.teardown?.();
  }

  const incoming = {
    "ui/notifications/tool-input": (params) => handlers.input?.(params.arguments || {}),
    "ui/notifications/tool-input-partial": (params) => handlers.partial?.(params.arguments || {}),
    "ui/notifications/tool-result": (params) => handlers.result?.(params),
    "ui/notifications/tool-cancelled": (params) => handlers.cancelled?.(params.reason),
    "ui/notifications/host-context-changed": adopt,
  };

  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || data?.jsonrpc !== "2.0") return;
    if (!data.method) return settle(data.id, data);
    if (data.id === undefined) return incoming[data.method]?.(data.params || {});
    if (data.method === "ui/resource-teardown") end();
    const known = data.method === "ui/resource-teardown" || data.method === "ping";
    post(known ? { id: data.id, result: {} } : { id: data.id, error: { code: -32601, message: "Method not found" } });
  });

  return {
    async connect(name, given) {
      handlers = given;
      const answer = await ask("ui/initialize", {
        protocolVersion: "2026-01-26",
        appInfo: { name, version: "1" },
        appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      });
      abilities = answer.hostCapabilities || {};
      adopt(answer.hostContext || {});
      notify("ui/notifications/initialized");
      const measure = () => {
        const { height } = document.documentElement.getBoundingClientRect();
        notify("ui/notifications/size-changed", { width: window.innerWidth, height: Math.ceil(height) });
      };
      new ResizeObserver(measure).observe(document.documentElement);
    },
    can: (what) => Boolean(abilities[what]),
    async call(name, args = {}) {
      const result = await ask("tools/call", { name, arguments: args });
      if (result.isError) throw new Error((result.content || []).map((block) => block.text || "").join("\n") || "The call failed.");
      return result.structuredContent || {};
    },
    message: (text) => ask("ui/message", { role: "user", content: [{ type: "text", text }] }),
    tell: (text, structuredContent) => ask("ui/update-model-context", { content: [{ type: "text", text }], structuredContent }),
    // Repeats work while the page is visible, never twice at a time; the work may return the next pause.
    every(ms, work) {
      const again = (pause) => {
        if (!open) return;
        const timer = setTimeout(async () => {
          timers.delete(timer);
          let next;
          if (document.visibilityState === "visible") next = await work().catch(() => undefined);
          again(next ?? ms);
        }, pause);
        timers.add(timer);
      };
      again(ms);
    },
  };
})();

// Makes an element. Strings become text, never markup: names and answers are not to be trusted.
function make(tag, attributes = {}, ...children) {
  const element = tag === "svg" || tag === "path" || tag === "circle" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
