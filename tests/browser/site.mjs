// The checks of the website that `make site` builds: every page in both themes, on a desktop and on a phone.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import http from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { startBrowser } from "./driver.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const places = JSON.parse(process.argv[2]);
const only = process.argv.slice(3);
const pages = (await readdir(places.site)).filter((name) => name.endsWith(".html") && (!only.length || only.includes(name)));
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json" };
const server = http.createServer(async (request, response) => {
  const path = new URL(request.url, "http://site").pathname;
  const body = await readFile(join(places.site, path)).catch(() => null);
  response.writeHead(body ? 200 : 404, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await startBrowser(places.chromium);
const problems = [];

for (const [theme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 900 } });
  for (const name of pages) {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/${name}`);
    await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate((rules) => window.axe.run(document, { runOnly: rules }), RULES);
    for (const one of violations) problems.push(`${theme} ${width} ${name} ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 140)).join(" | ")} (${one.nodes.length})`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) problems.push(`${theme} ${width} ${name} is ${wide}px too wide`);
    await page.keyboard.press("Tab"); // the first stop has to be seen
    const seen = await page.evaluate(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle !== "none" || style.boxShadow !== "none"; });
    if (!seen) problems.push(`${theme} ${width} ${name} shows no focus`);
    await page.close();
  }
  await context.close();
}
await browser.close();
server.close();
console.log(`site: ${pages.length} pages in 2 themes and 2 widths, ${problems.length} problems`);
assert.deepEqual(problems, []);
