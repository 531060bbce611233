// The smallest text agent on @a2a-js/sdk 1.3.0: declares text/plain, and says what it was asked.

import { createRequire } from 'node:module';

// The packages live in the cache folder that `interop/setup` filled; `interop/run` names it.
const require = createRequire(`${process.env.RIALTO_INTEROP_HOME}/a2a_js/package.json`);
const express = require('express');
const { AgentCard, Message, Part } = require('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = require('@a2a-js/sdk/server');
const { UserBuilder, agentCardHandler, jsonRpcHandler } = require('@a2a-js/sdk/server/express');

const echo = {
  async execute({ userMessage, contextId }, bus) {
    const text = userMessage.parts.map(Part.toJSON).flatMap((part) => part.text ?? []).join('\n');
    const message = { messageId: crypto.randomUUID(), contextId, role: 'ROLE_AGENT', parts: [{ text }] };
    bus.publish(AgentEvent.message(Message.fromJSON(message)));
  },
  async cancelTask() {},
};

console.log = console.error; // stdout has the READY line and nothing else
const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const card = AgentCard.fromJSON({
    name: 'Text Agent',
    description: 'Says what it was asked.',
    version: '1',
    supportedInterfaces: [{ url: `${url}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'ask', name: 'Ask', description: 'Says what it was asked.', tags: ['text'] }],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), echo);
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
  process.on('SIGTERM', () => process.exit(0));
  process.stdout.write(`READY ${url}\n`);
});
