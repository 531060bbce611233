// Vercel AI SDK: `generateText` with the tools of an MCP client.

import { KEY, PROMPT, load, serve } from "./driver.mjs";

const { generateText, stepCountIs } = await load("ai");
const { createMCPClient, ElicitationRequestSchema } = await load("@ai-sdk/mcp");
const { Experimental_StdioMCPTransport: StdioTransport } = await load("@ai-sdk/mcp/mcp-stdio");
const { createOpenAI } = await load("@ai-sdk/openai");

await serve(async (job) => {
  const transport =
    job.transport === "stdio"
      ? new StdioTransport({ command: job.command, args: job.args })
      : { type: "http", url: job.url, headers: job.headers };
  const capabilities = job.answer ? { elicitation: {} } : undefined;
  const client = await createMCPClient({ transport, capabilities });
  if (job.answer) client.onElicitationRequest(ElicitationRequestSchema, () => ({ action: "accept", content: job.answer }));
  try {
    const model = createOpenAI({ baseURL: `${job.model}/v1`, apiKey: KEY })("gpt-4.1");
    const { text } = await generateText({ model, tools: await client.tools(), prompt: PROMPT, stopWhen: stepCountIs(10) });
    return text;
  } finally {
    await client.close();
  }
});
