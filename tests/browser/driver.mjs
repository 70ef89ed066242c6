// Starts Chromium and the two origins of a web host: the host itself, which passes /to/… on to a server, and the
// sandbox, whose CSP is a header. Knows nothing of the pages that are tried with it.
import { readFile } from "node:fs/promises";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

export const CSP = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; connect-src 'none'";
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

function listen(address, answer) {
  const server = http.createServer(answer);
  return new Promise((resolve) => server.listen(0, address, () => resolve(server)));
}

function passOn(request, response, target) {
  const onward = http.request(new URL(request.url.slice("/to".length), target), { method: request.method, headers: { ...request.headers, host: new URL(target).host } }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", (problem) => response.writeHead(502).end(String(problem)));
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

export async function startHost(target) {
  const bundle = await build({ entryPoints: [here("host.mjs")], bundle: true, format: "iife", write: false, logLevel: "error" });
  const page = `<!doctype html><meta charset="utf-8"><title>host</title><style>body{margin:0}</style><script>${bundle.outputFiles[0].text.replaceAll("</script", "<\\/script")}</script>`;
  const sandbox = await readFile(here("sandbox.html"));
  const host = await listen("127.0.0.1", (request, response) => {
    if (request.url.startsWith("/to/")) return passOn(request, response, target);
    response.writeHead(200, { "content-type": "text/html" }).end(page);
  });
  const other = await listen("localhost", (_request, response) => response.writeHead(200, { "content-type": "text/html", "content-security-policy": CSP }).end(sandbox));
  return {
    url: `http://127.0.0.1:${host.address().port}/`,
    sandbox: `http://localhost:${other.address().port}/`,
    close: () => [host, other].forEach((server) => (server.closeAllConnections(), server.close())),
  };
}

export async function startBrowser(program) {
  return chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb", "--font-render-hinting=none"] });
}

export async function eventually(what, check, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  let last;
  for (;;) {
    try {
      const value = await check();
      if (value) return value;
      last = value;
    } catch (problem) {
      last = problem.message;
    }
    if (Date.now() > end) throw new Error(`${what}: ${last}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
