import { spawn } from "node:child_process";
import { startBrowser, startHost } from "./driver.mjs";
const places = JSON.parse(process.argv[2]);
const browser = await startBrowser(places.chromium);
const hosts = { server: await startHost(places.server), bare: await startHost(places.bare) };
const [program, ...words] = JSON.parse(places.game);
const game = spawn(program, words, { stdio: "ignore" });
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
page.on("console", (m) => /Ignoring|Parsed|Sending/.test(m.text()) || console.log("console", m.text()));
page.on("pageerror", (m) => console.log("pageerror", m));
const inner = () => page.frames().at(-1);
async function on(which, path, era = "2026-07-28") { await page.goto(hosts[which].url); console.log((await page.evaluate((o) => window.host.connect(o), { path: `/to/${path}/mcp`, era })).map(t=>t.name).join(" ")); }
async function show(which, options) {
  await page.setViewportSize({ width: options.width, height: 900 });
  await page.evaluate((o) => window.host.show(o), { sandbox: hosts[which].sandbox, height: options.mode === "fullscreen" ? 900 : 200, ...options });
}
const shot = (name) => page.locator("#app").screenshot({ path: `/tmp/look-${name}.png` });
const wait = (ms) => page.waitForTimeout(ms);
if (process.argv.includes("aoc")) {
await on("server", "aoc");
await show("server", { tool: "speed_leaderboard", theme: "light", width: 760 }); await wait(1500);
await inner().locator("td.cell button").nth(3).click(); await wait(800); await shot("aoc-detail");
await show("server", { tool: "speed_leaderboard", theme: "dark", width: 360 }); await wait(1500); await shot("aoc-360");
await on("bare", "aoc");
await show("bare", { tool: "speed_leaderboard", theme: "dark", width: 760 }); await wait(1500); await shot("aoc-empty");
}
if (process.argv.includes("bitburner")) {
await on("server", "bitburner");
await show("server", { tool: "browse_files", theme: "light", width: 760 }); await wait(3000); await shot("bb-list");
await inner().getByText("hack.js").first().click(); await wait(800); await shot("bb-file");
await show("server", { tool: "browse_files", theme: "dark", width: 1200, mode: "fullscreen", args: { filename: "notes.txt" } }); await wait(2500);
await inner().getByText("Ask the agent to change it").click(); await shot("bb-full");
await show("server", { tool: "browse_files", theme: "dark", width: 360 }); await wait(2500); await shot("bb-360");
await on("bare", "bitburner");
await show("bare", { tool: "browse_files", theme: "light", width: 760 }); await wait(3500); await shot("bb-empty");
}
if (process.argv.includes("mercury")) {
await on("server", "mercury");
const args = { messages: [{ role: "user", content: "Explain in a few sentences how a lighthouse works." }], diffusing: true, max_tokens: 300 };
await show("server", { tool: "mercury_chat_stream", theme: "light", width: 760, args }); await wait(700); await shot("me-running");
await wait(5000); await shot("me-done");
await inner().locator("#slider").fill("4"); await wait(300); await shot("me-past");
await show("server", { tool: "mercury_chat_stream", theme: "dark", width: 360, args: { ...args, diffusing: undefined } }); await wait(2500); await shot("me-360");
}
game.kill();
await browser.close();
for (const h of Object.values(hosts)) h.close();
