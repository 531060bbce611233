// An A2A 1.0 agent on the official JavaScript SDK, @a2a-js/sdk 1.3.0 (JSON-RPC or REST).

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { SKILLS, Skills, asked, last } from './skills.mjs';

// The packages live in the cache folder that `interop/setup` filled; `interop/run` names it.
const require = createRequire(`${process.env.RIALTO_INTEROP_HOME}/a2a_js/package.json`);
const express = require('express');
const { AgentCard, Message, Part, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } =
  require('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = require('@a2a-js/sdk/server');
const { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } =
  require('@a2a-js/sdk/server/express');

/** Wire JSON in, the SDK's own events out: its `fromJSON` is the only translation here. */
class Executor {
  #skills = new Skills();
  #tasks = new Map();

  async execute(context, bus) {
    const ids = { taskId: context.taskId, contextId: context.contextId };
    const stop = new AbortController();
    this.#tasks.set(ids.taskId, { ids, stop });
    let begun = false;
    try {
      for await (const event of this.#skills.answer(ids.taskId, read(context), stop.signal)) {
        if (event.reply) return bus.publish(reply(ids, event.reply));
        if (!begun) bus.publish(AgentEvent.task(context.task ?? submitted(ids, context)));
        begun = true;
        bus.publish(event.parts ? artifactUpdate(ids, event) : statusUpdate(ids, event));
      }
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    }
  }

  async cancelTask(taskId, bus) {
    const { ids, stop } = this.#tasks.get(taskId);
    stop.abort();
    bus.publish(statusUpdate(ids, { state: 'canceled' }));
  }
}

function read({ request, userMessage }) {
  const parts = userMessage.parts.map(Part.toJSON);
  const data = parts.find((part) => 'data' in part)?.data;
  const text = parts.flatMap((part) => part.text ?? []).join('\n');
  return asked([request.metadata, userMessage.metadata], data, text);
}

const submitted = ({ taskId, contextId }, { userMessage }) =>
  Task.fromJSON({
    id: taskId,
    contextId,
    status: { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() },
    history: [Message.toJSON(userMessage)],
  });

const statusUpdate = (ids, { state, text }) =>
  AgentEvent.statusUpdate(
    TaskStatusUpdateEvent.fromJSON({
      ...ids,
      status: {
        state: `TASK_STATE_${state.toUpperCase().replace('-', '_')}`,
        timestamp: new Date().toISOString(),
        ...(text && { message: agentMessage(ids, text) }),
      },
    }),
  );

const artifactUpdate = (ids, { name, parts, append, last }) =>
  AgentEvent.artifactUpdate(
    TaskArtifactUpdateEvent.fromJSON({
      ...ids,
      artifact: { artifactId: name, name, parts },
      append,
      lastChunk: last,
    }),
  );

const reply = ({ contextId }, text) =>
  AgentEvent.message(Message.fromJSON(agentMessage({ contextId }, text)));

const agentMessage = (ids, text) => ({
  ...ids,
  messageId: crypto.randomUUID(),
  role: 'ROLE_AGENT',
  parts: [{ text }],
});

const card = (url, rest, streaming) =>
  AgentCard.fromJSON({
    name: rest ? 'Js13 Rest Agent' : 'Js13 Agent',
    description: 'A foreign agent on @a2a-js/sdk 1.3.0.',
    version: '1.3.0',
    supportedInterfaces: [
      { url, protocolBinding: rest ? 'HTTP+JSON' : 'JSONRPC', protocolVersion: '1.0' },
    ],
    capabilities: { streaming },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: Object.entries(SKILLS).map(([id, { name, description, example }]) => ({
      id,
      name,
      description,
      tags: ['interop'],
      examples: [example],
    })),
  });

function endWithParent() {
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
  process.stdin.on('error', () => process.exit(0));
  process.on('SIGTERM', () => process.exit(0));
}

function main() {
  console.log = console.error; // stdout has the READY line and nothing else
  const { values: args } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      binding: { type: 'string', default: 'jsonrpc' },
      'no-streaming': { type: 'boolean', default: false },
    },
  });
  const rest = args.binding === 'rest';
  const app = express();
  const server = app.listen(Number(args.port), '127.0.0.1', () => {
    const url = `http://127.0.0.1:${server.address().port}`;
    const requestHandler = new DefaultRequestHandler(
      card(rest ? url : `${url}/`, rest, !args['no-streaming']),
      new InMemoryTaskStore(),
      new Executor(),
    );
    app.use((request, _answer, next) => {
      if (request.method === 'POST') last.trace = request.headers.traceparent ?? '';
      next();
    });
    const calls = rest ? restHandler : jsonRpcHandler;
    const described = agentCardHandler({ agentCardProvider: requestHandler });
    app.use('/.well-known/agent-card.json', described);
    app.use('/', calls({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
    endWithParent();
    process.stdout.write(`READY ${url}\n`);
  });
}

main();
