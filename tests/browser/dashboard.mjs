// The checks of the dashboard: what a person sees and can do at `/`, in both themes, on a phone, without a script.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { eventually, startBrowser } from "./driver.mjs";

const HOSTILE = "<img src=x onerror=alert(1)>";
const PAGES = ["/", "/?range=day", "/dashboard/bridge?name=aoc&range=hour", "/dashboard/bridge?name=mercury", "/dashboard/bridge?name=bitburner", "/dashboard/clients", "/dashboard/failures", "/dashboard/calls"];
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const places = JSON.parse(process.argv[2]);
const only = process.argv.slice(3);
const browser = await startBrowser(places.chromium);
const heard = { problems: [], dialogs: [], elsewhere: [] };
let page;

async function open(url, options = {}) {
  await page?.context().close();
  for (const list of Object.values(heard)) list.length = 0;
  const { bypassCSP = false, theme = "light", width = 1200, height = 900, ...rest } = options;
  const context = await browser.newContext({ bypassCSP, colorScheme: theme, viewport: { width, height }, ...rest });
  page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && heard.problems.push(message.text()));
  page.on("pageerror", (problem) => heard.problems.push(String(problem)));
  page.on("dialog", (dialog) => (heard.dialogs.push(dialog.message()), dialog.dismiss()));
  page.on("request", (request) => !request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:") && heard.elsewhere.push(request.url()));
  await page.goto(url);
}

const text = () => page.locator("main").innerText();

async function picture(name, last = "") { // up to the end of a section, or as high as the window
  if (!places.images) return;
  await page.evaluate((hostile) => { // folders of the machine that drew it are of no interest, nor is what attacks
    for (const row of document.querySelectorAll("tr, .bars li")) if (row.textContent.includes(hostile)) row.remove();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replace(/\/tmp\/[^/\s]+/g, "~");
  }, HOSTILE);
  const end = last && (await page.locator(last).boundingBox());
  const { width, height } = page.viewportSize();
  await page.screenshot({ path: `${places.images}/${name}.png`, clip: { x: 0, y: 0, width, height: end ? end.y + end.height + 32 : height } });
}

let lastId = 0;

async function post(server, method, params, headers = {}) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params });
  const answer = await fetch(`${server}/mcp`, { method: "POST", body, headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers } });
  await answer.text();
  return answer;
}

async function startSession(server, name, headers = {}) {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } };
  const answer = await post(server, "initialize", params, headers);
  assert.equal(answer.status, 200);
  return { ...headers, "mcp-session-id": answer.headers.get("mcp-session-id") };
}

const call = (server, session, name, args = {}) => post(server, "tools/call", { name, arguments: args }, session);

async function makeTraffic(count) {
  const session = await startSession(places.server, HOSTILE);
  const asked = { messages: [{ role: "user", content: "Hello" }] };
  for (let turn = 0; turn < count; turn++) {
    await call(places.server, session, "speed_leaderboard");
    await call(places.server, session, "list_files");
    await call(places.server, session, "mercury_chat_completion", asked);
    if (turn % 20 === 0) await call(places.server, session, "read_file", { filename: turn % 40 ? "lost.js" : "gone.js" });
    if (places.images) await new Promise((resolve) => setTimeout(resolve, 500 * (1.1 + Math.sin(turn / 7))));
  }
}

async function signIn(token) {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

function assertQuiet() {
  assert.deepEqual(heard, { problems: [], dialogs: [], elsewhere: [] });
}

const checks = {
  "pictures in both themes": async () => {
    if (!places.images) return;
    for (const theme of ["light", "dark"]) {
      await open(`${places.server}/`, { theme, width: 1200, height: 1500 });
      await picture(`dashboard-${theme}`, "#bridges");
      await open(`${places.server}/dashboard/bridge?name=aoc`, { theme, height: 1800 });
      await picture(`dashboard-bridge-${theme}`, "#tools");
    }
  },
  "every page: nothing wrong in the console, nothing from elsewhere, hostile names are text": async () => {
    for (const path of PAGES) {
      await open(places.server + path);
      assert.ok((await text()).length > 50, path);
      assert.equal(await page.locator("img[src='x']").count(), 0, path);
      assertQuiet();
    }
    await open(`${places.server}/dashboard/clients`);
    assert.match(await text(), /<img src=x onerror=alert\(1\)> 1/);
    await open(`${places.server}/dashboard/bridge?name=aoc`);
    assert.ok((await text()).includes(HOSTILE));
  },
  "every page passes the accessibility checks of axe, in both themes and on a phone": async () => {
    for (const [theme, width] of [["light", 1200], ["dark", 1200], ["light", 390], ["dark", 390]]) {
      for (const url of [...[...PAGES, "/dashboard/mistyped"].map((path) => places.server + path), `${places.guarded}/`, `${places.behind}/`]) {
        await open(url, { theme, width, bypassCSP: true });
        await page.addScriptTag({ path: AXE });
        const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
        const told = violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
        assert.deepEqual(told, [], `${theme} ${width} ${url}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${url} is ${wide}px too wide at ${width}`);
      }
    }
  },
  "the first page is painted fast, small, and changes by itself until it is paused": async () => {
    await open(`${places.server}/`);
    const paint = await eventually("a paint", () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
    const bytes = await page.evaluate(() => [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")].reduce((sum, one) => sum + one.encodedBodySize, 0));
    console.log(`  first paint ${Math.round(paint)} ms, ${bytes} bytes`);
    assert.ok(bytes < 100_000, String(bytes));
    assert.ok(paint < 2000, String(paint)); // on a busy machine; the bench has the figure
    const before = await page.locator("#now").innerText();
    const session = await startSession(places.server, "live");
    await eventually("a live update", async () => {
      await call(places.server, session, "speed_leaderboard");
      return (await page.locator("#now").innerText()) !== before;
    });
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assertQuiet();
  },
  "a command is copied by its button, which is not there without a script": async () => {
    await open(`${places.server}/dashboard/clients?client=cursor`, { permissions: ["clipboard-read", "clipboard-write"] });
    const command = `bridgehead install cursor --url ${places.server}/aoc/mcp --no-token`;
    const item = page.locator(".connect li", { hasText: "Advent of Code" });
    assert.equal(await item.locator("pre").innerText(), command);
    await item.getByRole("button", { name: "Copy" }).click();
    await item.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
    assertQuiet();
    await open(`${places.server}/dashboard/clients?client=cursor`, { width: 390 });
    const heights = await page.locator(".command .word").evaluateAll((words) => words.map((word) => word.offsetHeight));
    assert.equal(new Set(heights).size, 1, "a word of a command is broken on a phone");
    await open(`${places.server}/dashboard/clients`, { javaScriptEnabled: false });
    assert.equal(await page.getByRole("button", { name: "Copy" }).count(), 0);
  },
  "the charts show another range, and stay with it while the page is live": async () => {
    await open(`${places.server}/`);
    await page.getByRole("link", { name: "24 h" }).click();
    await page.getByText("Failed calls in 5 min").waitFor();
    assert.equal(await page.getByRole("link", { name: "24 h" }).getAttribute("aria-current"), "true");
    const answer = await page.waitForResponse((response) => response.url().endsWith("/?range=day"));
    assert.match(await answer.text(), /Failed calls in 5 min/);
    assertQuiet();
  },
  "without a script every page reads the same": async () => {
    await open(`${places.server}/`, { javaScriptEnabled: false });
    assert.match(await text(), /Advent of Code/);
    assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);
    await page.getByRole("link", { name: "Clients" }).click();
    assert.match(await text(), /Sessions/);
  },
  "with 50 clients, lists have pages of 50 and a filter, on a screen and on a phone": async () => {
    await Promise.all(Array.from({ length: 52 }, (_, number) => startSession(places.server, `crowd-${number}`)));
    for (const width of [1200, 390]) {
      await open(`${places.server}/dashboard/clients`, { width, bypassCSP: true });
      await page.addScriptTag({ path: AXE });
      const { violations } = await page.evaluate(() => window.axe.run(document));
      assert.deepEqual(violations.map((one) => one.id), []);
      assert.equal(await page.locator("#sessions tbody tr").count(), 50);
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      console.log(`  clients at ${width} px: ${height} px high`);
      assert.ok(height < 6000, String(height));
      if (places.shots) await page.screenshot({ path: `${places.shots}/clients-50-${width}.png`, fullPage: true });
      await page.getByRole("link", { name: "Next page of sessions" }).click();
      await page.getByRole("link", { name: "Previous page of sessions" }).waitFor();
      await page.getByLabel("Name of a token, caller or client").fill("CROWD-7");
      await page.getByRole("button", { name: "Filter" }).click();
      await page.getByRole("link", { name: "Show all" }).waitFor();
      assert.equal(await page.locator("#sessions tbody tr").count(), 1);
      assertQuiet();
    }
  },
  "who has no token is refused with the reason, who may look cannot act, who may act can": async () => {
    await open(`${places.guarded}/dashboard/clients`);
    await signIn("bh_0123456789ab_wrong");
    await page.getByRole("alert").waitFor();
    assert.match(await text(), /not known here, or was revoked/);
    await signIn(places.looker);
    await page.getByRole("link", { name: "Clients" }).click();
    assert.match(await text(), /robot/);
    assert.equal(await page.getByRole("link", { name: "Revoke robot" }).count(), 0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    const session = await startSession(places.guarded, "agent", { authorization: `Bearer ${places.robot}` });
    await signIn(places.boss);
    await page.getByRole("link", { name: "Clients" }).click();
    if (places.images) await page.setViewportSize({ width: 1200, height: 1180 });
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      await picture(`dashboard-clients-${colorScheme}`);
    }
    await page.getByRole("button", { name: /End the session of agent/ }).click();
    await eventually("the session ended", async () => (await call(places.guarded, session, "speed_leaderboard")).status === 404);
    await page.getByRole("link", { name: "Revoke robot" }).click();
    await page.getByRole("button", { name: "Revoke the token of robot" }).click();
    await eventually("the token revoked", async () => (await call(places.guarded, { authorization: `Bearer ${places.robot}` }, "speed_leaderboard")).status === 401);
    const cookies = await page.context().cookies();
    assert.ok(cookies.every((cookie) => cookie.httpOnly && cookie.sameSite === "Strict"));
  },
  "somebody signs in at another site, refuses, agrees, and may ask to act": async () => {
    await open(`${places.behind}/`);
    const agree = async (name, link) => {
      await page.getByRole("link", { name }).click();
      await page.waitForURL(`${places.issuer}/**`);
      await page.getByRole("link", { name: link }).click();
      await page.waitForURL(`${places.behind}/**`);
    };
    await agree(/^Sign in with/, "Deny");
    await page.getByRole("alert").waitFor();
    assert.match(await text(), /consent was denied/);
    await agree(/^Sign in with/, "Agree");
    await page.getByText("oauth:alice").waitFor();
    assert.equal(page.url(), `${places.behind}/`);
    await page.getByRole("link", { name: "Clients" }).click();
    await agree("Sign in again to act", "Agree");
    await page.getByText("oauth:alice").waitFor();
    await page.getByRole("link", { name: "Clients" }).click();
    assert.equal(await page.getByRole("link", { name: "Sign in again to act" }).count(), 0);
    const cookies = (await page.context().cookies()).filter((cookie) => cookie.domain === "localhost");
    assert.equal(cookies.length, 2);
    assert.ok(cookies.every((cookie) => cookie.httpOnly && cookie.sameSite === "Strict"));
    await page.goto(places.issuer); // whoever follows a link from another site is still signed in
    await page.setContent(`<a href="${places.behind}/">a link from elsewhere</a>`);
    await page.getByRole("link").click();
    await page.getByText("oauth:alice").waitFor();
    await page.context().clearCookies(); // as when the sign-in ends
    await page.getByRole("button", { name: "Not live" }).waitFor();
  },
};

let failed = 0;
const [program, ...options] = JSON.parse(places.game);
const game = spawn(program, options, { stdio: "ignore" });
try {
  await eventually("a game", async () => (await (await fetch(`${places.server}/readyz`)).json()).bridges.bitburner.far_side);
  await makeTraffic(places.images ? 150 : 5);
  for (const [name, check] of Object.entries(checks)) {
    if (only.length && !only.some((word) => `dashboard: ${name}`.includes(word))) continue;
    try {
      await check();
      console.log(`ok   dashboard: ${name}`);
    } catch (problem) {
      failed += 1;
      console.log(`FAIL dashboard: ${name}\n${problem.stack}`);
    }
  }
} finally {
  game.kill();
  await browser.close();
}
process.exit(failed ? 1 : 0);
