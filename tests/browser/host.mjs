// A web host, as small as it can be: the official client, the official AppBridge, and a frame on another origin.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport, getToolUiResourceUri, isToolVisibilityAppOnly } from "@modelcontextprotocol/ext-apps/app-bridge";

const UI = "io.modelcontextprotocol/ui";
const MIME = "text/html;profile=mcp-app";
let client;
let bridge;

async function connect({ path, era, apps = true }) {
  const extensions = apps ? { [UI]: { mimeTypes: [MIME] } } : {};
  const mode = era === "2026-07-28" ? { pin: era } : "legacy";
  client = new Client({ name: "browser-host", version: "1" }, { capabilities: { extensions }, versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(path, location.href)));
  const { tools } = await client.listTools();
  return tools.map((tool) => ({ name: tool.name, uri: getToolUiResourceUri(tool), appOnly: isToolVisibilityAppOnly(tool) }));
}

async function show({ sandbox, tool, args = {}, theme, mode = "inline", width, height, variables, call = true, abilities = {} }) {
  const events = (window.events = { messages: [], context: [], sizes: [], calls: [], initialized: 0 });
  const { tools } = await client.listTools();
  const uri = getToolUiResourceUri(tools.find((one) => one.name === tool));
  const { contents } = await client.readResource({ uri });
  document.documentElement.style.background = theme === "dark" ? "#0f1115" : "#eceef1";
  document.body.replaceChildren();
  const frame = document.createElement("iframe");
  frame.id = "app";
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
  frame.style.cssText = `border:0;width:${width}px;height:${height}px;display:block`;
  document.body.append(frame);
  bridge = new AppBridge(client, { name: "browser-host", version: "1" },
    { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { text: {} }, ...abilities },
    { hostContext: { theme, displayMode: mode, availableDisplayModes: ["inline", "fullscreen"], ...(variables ? { styles: { variables } } : {}) } });
  bridge.onmessage = async (params) => (events.messages.push(params), {});
  bridge.onupdatemodelcontext = async (params) => (events.context.push(params), {});
  bridge.onrequestdisplaymode = async (params) => ({ mode: params.mode });
  bridge.addEventListener("sizechange", (params) => {
    events.sizes.push(params);
    if (params.height && mode === "inline") frame.style.height = `${Math.min(params.height, 4000)}px`;
  });
  const ready = new Promise((resolve) => bridge.addEventListener("initialized", () => (events.initialized++, resolve())));
  bridge.addEventListener("sandboxready", () => bridge.sendSandboxResourceReady({ html: contents[0].text, sandbox: "allow-scripts" }));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = sandbox;
  await ready;
  await bridge.sendToolInput({ arguments: args });
  const shown = bridge; // another page may be shown before the answer comes
  if (call) client.callTool({ name: tool, arguments: args }).then((result) => shown.sendToolResult(result));
  return { uri, mimeType: contents[0].mimeType, border: contents[0]._meta?.ui?.prefersBorder };
}

window.host = {
  connect,
  show,
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (name, args) => client.callTool({ name, arguments: args }),
  context: (news) => bridge.setHostContext({ ...news }),
  teardown: () => bridge.teardownResource({}),
  revision: () => client.getNegotiatedProtocolVersion?.() ?? client.getProtocolEra?.(),
};
