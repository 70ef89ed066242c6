// The official TypeScript SDK, first generation, which knows the handshake only.
//
//     node typescript_sdk1.mjs http|sse URL
//     node typescript_sdk1.mjs stdio COMMAND [ARGUMENT...]

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { checkAll } from "./checks.mjs";

const [transportName, target, ...rest] = process.argv.slice(2);

const token = process.env.INTEROP_TOKEN;
const requestInit = token ? { headers: { Authorization: `Bearer ${token}` } } : {};

function transport() {
    if (transportName === "http") return new StreamableHTTPClientTransport(new URL(target), { requestInit });
    if (transportName === "sse") return new SSEClientTransport(new URL(target), { requestInit });
    return new StdioClientTransport({ command: target, args: rest, env: process.env });
}

await checkAll(async () => {
    const asked = [];
    const client = new Client({ name: "interop", version: "1.0.0" }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, async (request) => {
        asked.push(request.params.message);
        return { action: "accept", content: { name: "Ada" } };
    });
    await client.connect(transport());
    const call = (params, options) => client.callTool(params, undefined, options);
    return { client, asked, revision: "2025-11-25", call };
});
