// What every TypeScript client checks once it is connected: owns the questions and the right answers.

import assert from "node:assert/strict";

const SECONDS = 20_000;
const TOOLS = ["add", "ask_name", "cancellations", "echo", "revision", "slow_count"];
const INVALID_PARAMS = -32602;

// A peer is what the SDKs have in common: `client`, and `call(params, options)` for a tool.
const CHECKS = {
    async "says who it is"({ client }) {
        assert.equal(client.getServerVersion().name, "interop");
        assert.equal(client.getServerVersion().version, "1.0.0");
        assert.equal(client.getInstructions(), "Adds numbers, counts slowly and greets people.");
    },

    async "agrees on the revision"({ call, revision }) {
        assert.equal(text(await call({ name: "revision", arguments: {} })), revision);
    },

    async "lists every tool"({ client }) {
        const { tools } = await client.listTools();
        assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
        const add = tools.find((tool) => tool.name === "add");
        assert.deepEqual(Object.keys(add.inputSchema.properties).sort(), ["a", "b"]);
        assert.equal(add.outputSchema.properties.sum.type, "integer");
    },

    async "answers with structured output"({ call }) {
        const result = await call({ name: "add", arguments: { a: 2, b: 3 } });
        assert.deepEqual(result.structuredContent, { sum: 5 });
        assert.deepEqual(JSON.parse(text(result)), { sum: 5 });
    },

    async "gives text back as it was sent"({ call }) {
        const said = 'tabs\t"quotes" \u2028 and \u{1f309}\nlines';
        assert.equal(text(await call({ name: "echo", arguments: { text: said } })), said);
    },

    async "lists and reads a resource"({ client }) {
        const { resources } = await client.listResources();
        assert.deepEqual(resources.map((resource) => resource.uri), ["interop://motto"]);
        const { contents } = await client.readResource({ uri: "interop://motto" });
        assert.equal(contents[0].text, "Meet in the middle.");
        assert.equal(contents[0].mimeType, "text/plain");
    },

    async "lists and reads a template"({ client }) {
        const { resourceTemplates } = await client.listResourceTemplates();
        assert.deepEqual(resourceTemplates.map((one) => one.uriTemplate), ["interop://cities/{city}"]);
        const { contents } = await client.readResource({ uri: "interop://cities/Lyon" });
        assert.equal(contents[0].text, "Lyon is a city.");
    },

    async "lists and fills in a prompt"({ client }) {
        const { prompts } = await client.listPrompts();
        assert.deepEqual(prompts.map((prompt) => prompt.name), ["plan_day"]);
        assert.equal(prompts[0].arguments[0].name, "city");
        assert.equal(prompts[0].arguments[0].required, true);
        const { messages } = await client.getPrompt({ name: "plan_day", arguments: { city: "Paris" } });
        assert.equal(messages[0].content.text, "Plan a day in Paris.");
    },

    async "completes an argument"({ client }) {
        const { completion } = await client.complete({
            ref: { type: "ref/prompt", name: "plan_day" },
            argument: { name: "city", value: "Li" },
        });
        assert.deepEqual(completion.values, ["Lisbon", "Liverpool"]);
    },

    async "reports progress, the last as well"({ call }) {
        for (let run = 0; run < 30; run++) {
            const seen = [];
            const onprogress = ({ progress, total }) => seen.push([progress, total]);
            const result = await call({ name: "slow_count", arguments: { n: 3 } }, { onprogress });
            assert.deepEqual(result.structuredContent, { counted: 3 });
            assert.deepEqual(seen, [[1, 3], [2, 3], [3, 3]]);
        }
    },

    async "asks the user"({ call, asked }) {
        const result = await call({ name: "ask_name", arguments: {} });
        assert.equal(text(result), "Hello, Ada!");
        assert.deepEqual(asked, ["What is your name?"]);
    },

    async "reports wrong arguments to the model"({ call }) {
        const result = await call({ name: "add", arguments: { a: 2, b: "three" } });
        assert.equal(result.isError, true);
    },

    async "refuses an unknown tool"({ call }) {
        await assert.rejects(call({ name: "no_such_tool", arguments: {} }), (error) => {
            assert.equal(error.code, INVALID_PARAMS);
            return true;
        });
    },

    async "ends a cancelled call"({ call }) {
        const before = await cancellations(call);
        const stop = new AbortController();
        const options = { onprogress: () => stop.abort("enough"), signal: stop.signal };
        await assert.rejects(call({ name: "slow_count", arguments: { n: 1000 } }, options));
        const deadline = Date.now() + SECONDS / 2;
        while ((await cancellations(call)) === before && Date.now() < deadline) {
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
        assert.equal(await cancellations(call), before + 1);
    },
};

// Run every check in order; the first wrong thing ends the process with a line that says what it was.
export async function checkAll(connect) {
    let doing = "connects";
    try {
        const peer = await within(connect(), doing);
        for (const [name, check] of Object.entries(CHECKS)) {
            doing = name;
            await within(check(peer), doing);
        }
        doing = "closes";
        await within(peer.client.close(), doing);
    } catch (error) {
        console.error(`${doing}: ${error.message.split("\n").filter(Boolean).join(" | ")}`);
        process.exit(1);
    }
    console.log(`${Object.keys(CHECKS).length} checks`);
    process.exit(0);
}

function text(result) {
    assert.equal(result.content.length, 1);
    return result.content[0].text;
}

async function cancellations(call) {
    const result = await call({ name: "cancellations", arguments: {} });
    return result.structuredContent.count;
}

function within(promise, doing) {
    const late = new Promise((_, reject) => {
        setTimeout(() => reject(new Error(`${doing} took more than ${SECONDS} ms`)), SECONDS).unref();
    });
    return Promise.race([promise, late]);
}
