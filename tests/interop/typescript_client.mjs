// The official TypeScript client, second generation, in one of its three modes.
//
//     node typescript_client.mjs legacy|auto|modern http URL
//     node typescript_client.mjs legacy|auto|modern stdio COMMAND [ARGUMENT...]

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { checkAll } from "./checks.mjs";

const MODES = {
    legacy: { mode: "legacy", revision: "2025-11-25" },
    auto: { mode: "auto", revision: "2026-07-28" },
    modern: { mode: { pin: "2026-07-28" }, revision: "2026-07-28" },
};

const [modeName, transportName, target, ...rest] = process.argv.slice(2);
const { mode, revision } = MODES[modeName];

const token = process.env.INTEROP_TOKEN;
const requestInit = token ? { headers: { Authorization: `Bearer ${token}` } } : {};

function transport() {
    if (transportName === "http") return new StreamableHTTPClientTransport(new URL(target), { requestInit });
    return new StdioClientTransport({ command: target, args: rest, env: process.env });
}

await checkAll(async () => {
    const asked = [];
    const client = new Client(
        { name: "interop", version: "1.0.0" },
        { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
    );
    client.setRequestHandler("elicitation/create", async (request) => {
        asked.push(request.params.message);
        return { action: "accept", content: { name: "Ada" } };
    });
    await client.connect(transport());
    return { client, asked, revision, call: (params, options) => client.callTool(params, options) };
});
