// mcp-client, by the author of npm's `fastmcp` (which is for servers only). It has no agents: the loop is with OpenAI's own SDK.

import { KEY, PROMPT, load, serve } from "./driver.mjs";

const { MCPClient } = await load("mcp-client");
const { default: OpenAI } = await load("openai");

await serve(async (job) => {
  const client = new MCPClient({ name: "worker", version: "1.0.0" });
  if (job.transport === "stdio") await client.connect({ type: "stdio", command: job.command, args: job.args });
  else await withHeaders(job, () => client.connect({ type: "httpStream", url: job.url }));
  try {
    return await converse(client, new OpenAI({ baseURL: `${job.model}/v1`, apiKey: KEY }));
  } finally {
    await client.close();
  }
});

// The package has no option for headers: its user has to give them to `fetch`.
async function withHeaders(job, connect) {
  const plain = globalThis.fetch;
  globalThis.fetch = (url, init = {}) => {
    const headers = new Headers(init.headers);
    if (String(url).startsWith(job.url)) for (const [name, value] of Object.entries(job.headers)) headers.set(name, value);
    return plain(url, { ...init, headers });
  };
  await connect();
}

async function converse(client, model) {
  const tools = (await client.getAllTools()).map(({ name, description, inputSchema }) => ({
    type: "function",
    function: { name, description, parameters: inputSchema },
  }));
  const messages = [{ role: "user", content: PROMPT }];
  for (;;) {
    const { choices } = await model.chat.completions.create({ model: "gpt-4.1", messages, tools });
    messages.push(choices[0].message);
    if (!choices[0].message.tool_calls?.length) return choices[0].message.content;
    for (const { id, function: called } of choices[0].message.tool_calls) {
      const { content } = await client.callTool({ name: called.name, arguments: JSON.parse(called.arguments) });
      messages.push(...told(id, content));
    }
  }
}

// A tool's result; its pictures follow as the user's, because the API takes them nowhere else.
function told(id, content) {
  const text = content.filter(({ type }) => type === "text").map(({ text }) => text);
  const pictures = content
    .filter(({ type }) => type === "image")
    .map(({ data, mimeType }) => ({ type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } }));
  const messages = [{ role: "tool", tool_call_id: id, content: text.join("\n") }];
  return pictures.length ? [...messages, { role: "user", content: pictures }] : messages;
}
