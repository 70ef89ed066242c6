// The echo server on the official TypeScript SDK, over stdio or HTTP.
//
// The bench copies this file beside the node_modules it installed, and starts the copy.
import { z } from 'zod';
import { McpServer } from '@modelcontextprotocol/server';

const inputSchema = z.object({ text: z.string().describe('What to say back') });

function echoServer() {
    const server = new McpServer({ name: 'echo', version: '1.0.0' });
    server.registerTool(
        'echo',
        { description: 'Says back what it is told.', inputSchema },
        async ({ text }) => ({ content: [{ type: 'text', text }] })
    );
    return server;
}

async function serveStdio() {
    const { serveStdio: serve } = await import('@modelcontextprotocol/server/stdio');
    serve(echoServer);
}

// Requests of the stateless era name their version in a header; all others belong to a session.
async function serveHttp(port) {
    const { createServer } = await import('node:http');
    const { randomUUID } = await import('node:crypto');
    const { createMcpHandler } = await import('@modelcontextprotocol/server');
    const { localhostHostValidation, localhostOriginValidation, NodeStreamableHTTPServerTransport, toNodeHandler } =
        await import('@modelcontextprotocol/node');

    const hostAllowed = localhostHostValidation();
    const originAllowed = localhostOriginValidation();
    const stateless = toNodeHandler(createMcpHandler(echoServer, { legacy: 'reject', responseMode: 'auto' }));
    const sessions = new Map();

    async function openSession() {
        const transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: () => randomUUID(),
            enableJsonResponse: true,
            onsessioninitialized: id => {
                sessions.set(id, transport);
            }
        });
        await echoServer().connect(transport);
        return transport;
    }

    createServer(async (request, response) => {
        if (!hostAllowed(request, response) || !originAllowed(request, response)) return;
        if (request.headers['mcp-protocol-version'] === '2026-07-28') return stateless(request, response);
        const id = request.headers['mcp-session-id'];
        const transport = sessions.get(id) ?? (id === undefined ? await openSession() : undefined);
        if (transport === undefined) return response.writeHead(404).end();
        await transport.handleRequest(request, response);
    }).listen(port, '127.0.0.1');
}

const [transport, port] = process.argv.slice(2);
await (transport === 'stdio' ? serveStdio() : serveHttp(Number(port)));
