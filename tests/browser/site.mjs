// The checks of the website that `make site` builds: every page in both themes, on a desk and on a phone.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { startBrowser } from "./driver.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const places = JSON.parse(process.argv[2]);
const only = process.argv.slice(3);
// The page for what is not there has absolute links: it needs the server that the site is put on.
const pages = (await readdir(places.site)).filter((name) => name.endsWith(".html") && name !== "404.html" && (!only.length || only.includes(name)));
const problems = [];

for (const [theme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
  const browser = await startBrowser(places.chromium);
  const page = await browser.newPage({ colorScheme: theme, viewport: { width, height: 900 } });
  for (const name of pages) {
    await page.goto(pathToFileURL(`${places.site}/${name}`).href);
    await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate((rules) => window.axe.run(document, { runOnly: rules, resultTypes: ["violations"] }), RULES);
    for (const one of violations) problems.push(`${theme} ${width} ${name} ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 140)).join(" | ")} (${one.nodes.length})`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) problems.push(`${theme} ${width} ${name} is ${wide}px too wide`);
    await page.keyboard.press("Tab"); // the first stop has to be seen
    const seen = await page.evaluate(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle !== "none" || style.boxShadow !== "none"; });
    if (!seen) problems.push(`${theme} ${width} ${name} shows no focus`);
  }
  await browser.close();
}
console.log(`site: ${pages.length} pages in 2 themes at 2 widths, ${problems.length} problems`);
assert.deepEqual(problems, []);
