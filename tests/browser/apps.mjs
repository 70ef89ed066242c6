// The checks of the apps: what a person sees and can do, in the official host.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { eventually, startBrowser, startHost } from "./driver.mjs";

const places = JSON.parse(process.argv[2]);
const only = process.argv.slice(3);
const browser = await startBrowser(places.chromium);
const hosts = { server: await startHost(places.server), bare: await startHost(places.bare) };

const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, deviceScaleFactor: 1 });
page.on("console", (m) => console.log("console", m.text()));
await page.goto(hosts.server.url);
console.log(await page.evaluate((o) => window.host.connect(o), { path: "/to/aoc/mcp", era: "2026-07-28" }), await page.evaluate(() => window.host.revision()));
for (const [theme, width] of [["light", 760], ["dark", 1200], ["light", 360]]) {
  await page.setViewportSize({ width, height: 900 });
  console.log(await page.evaluate((o) => window.host.show(o), { sandbox: hosts.server.sandbox, tool: "speed_leaderboard", theme, width, height: 200 }));
  await page.waitForTimeout(1500);
  await page.locator("#app").screenshot({ path: `/tmp/look-aoc-${theme}-${width}.png` });
}
await browser.close();
for (const h of Object.values(hosts)) h.close();
