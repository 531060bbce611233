// Mastra: an `Agent` with the tools of an `MCPClient`.

import { KEY, PROMPT, load, serve } from "./driver.mjs";

const { Agent } = await load("@mastra/core/agent");
const { MCPClient } = await load("@mastra/mcp");
const { createOpenAI } = await load("@ai-sdk/openai");

await serve(async (job) => {
  const rialto =
    job.transport === "stdio"
      ? { command: job.command, args: job.args }
      : { url: new URL(job.url), requestInit: { headers: job.headers } };
  if (job.answer) rialto.inputRequests = async () => ({ action: "accept", content: job.answer });
  const client = new MCPClient({ servers: { rialto } });
  try {
    const model = createOpenAI({ baseURL: `${job.model}/v1`, apiKey: KEY })("gpt-4.1");
    const tools = await client.listTools();
    const agent = new Agent({ id: "worker", name: "worker", instructions: "You work with tools.", model, tools });
    const { text } = await agent.generate(PROMPT, { maxSteps: 10 });
    return text;
  } finally {
    await client.disconnect();
  }
});
