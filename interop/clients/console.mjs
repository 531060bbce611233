// A person at the console, played by Chromium: opens pages of a real server, clicks, types, and says what is not as it should be.
//
//     console.mjs SCENARIO --url URL [--token TOKEN] [--agent URL] [--other URL] [--guest TOKEN] [--shots FOLDER] [--spki DIGEST]
//
// It ends with 0 when everything was as it should be; else it says on stderr what was not.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import './end_with_parent.mjs';

const require = createRequire(`${process.env.RIALTO_INTEROP_HOME}/console/package.json`);
const { chromium } = require('playwright-core');
const axe = require('axe-core').source;

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: 'string' }, token: { type: 'string' }, agent: { type: 'string' }, other: { type: 'string' }, guest: { type: 'string' }, shots: { type: 'string' }, spki: { type: 'string' } },
});
/** So long something may take where others are at work too. Nothing waits longer than it has to. */
const PATIENCE = 60_000;
/** Without any script, forms post and redirect. */
const HAS_SCRIPT = positionals[0] !== 'plain';
const PROGRAM = '/usr/bin/chromium';
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const EVERY_PAGE = [
  '', '/agents', '/register', '/tools', '/tasks', '/workflows', '/approvals', '/dispatches', '/policies', '/policies/new', '/policies/starter.cedar',
  '/policies/test?action=a2a_invoke&target=desk.echo', '/policies/matrix', '/guardrails', '/tokens', '/audit', '/audit/verify',
  '/agents/desk', '/agents/desk/try/greet', '/agents/desk/remove', '/refresh', '/new-workflow', '/deploy',
];
const LOOKS = [['light', 1280, 820], ['dark', 1280, 820], ['light', 390, 800]];
/** A page with everything it loads weighs less than this, in bytes. */
const LIGHT = 150_000;

class Person {
  constructor(page) {
    this.page = page;
    this.trouble = [];
    page.setDefaultTimeout(PATIENCE);
    page.on('pageerror', (error) => this.trouble.push(`script: ${error}`));
    page.on('dialog', (dialog) => { this.trouble.push(`a dialog of the browser: ${dialog.message()}`); dialog.dismiss(); });
    page.on('console', (line) => {
      // A form that is refused is an answer like any other; the browser says so in red.
      if (line.type() === 'error' && !/status of (4\d\d|50[0-9])|ERR_INTERNET_DISCONNECTED/.test(line.text())) this.trouble.push(`console: ${line.text()}`);
    });
  }

  open(path) { return this.page.goto(`${given.url}/factory${path}`); }

  async signIn() {
    if (!given.token) return this.open('');
    await this.open('');
    await this.page.getByLabel('Token').fill(given.token);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
    await this.arrive('Overview');
  }

  see(text) { return this.page.getByText(text).filter({ visible: true }).first().waitFor(); }

  /**
   * Until the page with that heading is there and its script at work. Whoever clicks what leads to another page waits for this first: until
   * then everything else may still be found on the page before.
   */
  arrive(name) { return this.page.locator(HAS_SCRIPT ? 'html.script' : 'html').getByRole('heading', { level: 1, name, exact: true }).waitFor(); }

  /** Until a node of a drawing looks so. */
  node(id, state) { return this.page.locator('.graph').getByText(`${id} · ${state}`).waitFor(); }

  /** Until that has the focus, by its id or by what it says. */
  focus(what) { return this.page.waitForFunction((what) => (document.activeElement.id || document.activeElement.textContent.trim()) === what, what); }

  /** Goes somewhere by its keys. They belong together, so the second does not wait for an answer to the first. */
  async go(key, heading) {
    await Promise.all(['g', key].map((it) => this.page.keyboard.press(it)));
    await this.arrive(heading);
  }

  /** The registration dialog, filled in and sent. */
  async register(url, trust = 'external') {
    const { page } = this;
    await page.getByRole('link', { name: /Register/ }).first().click();
    const dialog = page.locator('dialog#over');
    await dialog.getByLabel('Address').fill(url);
    await dialog.getByLabel('Trust').selectOption(trust);
    await dialog.getByRole('button', { name: 'Register' }).click();
    return dialog;
  }

  /** What axe finds that keeps somebody out. */
  async check(what) {
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(async () => {
      // A page takes nothing away while something is pressed: so it holds still while it is looked at.
      dispatchEvent(new PointerEvent('pointerdown'));
      // What is still coming up has not its colours yet.
      await Promise.allSettled(document.getAnimations().filter((it) => it.effect.getComputedTiming().endTime < Infinity).map((it) => it.finished));
      try { return await window.axe.run(document, { resultTypes: ['violations'] }); } finally { dispatchEvent(new PointerEvent('pointerup')); }
    });
    const bad = found.violations.filter(({ impact }) => ['moderate', 'serious', 'critical'].includes(impact));
    const told = bad.map((it) => `${it.id} (${it.impact}): ${it.help}: ${it.nodes.slice(0, 3).map((node) => `${node.html}\n ${node.failureSummary}`).join(' | ')}`);
    assert.deepEqual(told, [], `axe at ${what}`);
    const [wide, room] = await this.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${what} is wider (${wide}) than the window (${room})`);
  }

  /** In these colours and a window so wide. */
  async wear(theme, width, height = 820) {
    await this.page.setViewportSize({ width, height });
    await this.page.context().addCookies([{ name: 'rialto_theme', value: theme, url: given.url }]);
  }

  /** A page in both colours and on a phone. */
  async checkAll(path, what = path) {
    for (const [theme, width, height] of LOOKS) {
      await this.wear(theme, width, height);
      const answer = await this.open(path);
      assert.equal(answer.status(), 200, path);
      await this.check(`${what || '/'} (${theme}, ${width})`);
    }
    await this.wear('light', 1280);
  }

  /** A picture of what is seen, or of the whole page. */
  shot(name, fullPage = false) {
    if (!given.shots) return undefined;
    return this.page.screenshot({ path: join(given.shots, `${name}.png`), fullPage });
  }
}

/** Calls a skill from outside, as any client would. */
async function call(skill, body = {}, token = given.token) {
  const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(`${given.url}/call/${skill}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.status;
}

/** Asks the API for something. */
async function api(path, body, type = 'application/json') {
  const headers = { 'content-type': type, ...(given.token ? { authorization: `Bearer ${given.token}` } : {}) };
  const answer = await fetch(`${given.url}/api/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST', headers, body: typeof body === 'object' ? JSON.stringify(body) : body,
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${answer.ok ? '' : await answer.text()}`);
  return answer.json();
}

/** An address of this machine where nobody answers. */
async function nobody() {
  for (let port = 18_000; port < 19_000; port += 1) {
    const isTaken = await new Promise((done) => {
      const socket = connect(port, '127.0.0.1', () => { socket.destroy(); done(true); }).on('error', () => done(false));
    });
    if (!isTaken) return `http://127.0.0.1:${port}`;
  }
  throw new Error('every port from 18000 on is taken');
}

/** Agents that only have a card, by the first word of the path; `answers` says what stands there: a status, and a text. */
async function cards(answers) {
  const server = createServer((request, response) => {
    const [status, body] = answers(request.url.split('/')[1]);
    response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => { server.closeAllConnections(); server.close(); } };
}

/** A card like any other. */
const card = (name, url) => ({
  name, description: `${name} of the tests`, url, version: '1.0.0', protocolVersion: '0.3.0', capabilities: {},
  defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [{ id: 'do', name: 'do', description: 'does', tags: ['sample'] }],
});

/** The path of a page below the console. */
const below = (page) => new URL(page.url()).pathname.replace('/factory', '');

/** Something of each kind that has a page of its own: a task, a choice, a run. */
async function something() {
  await call('desk.greet', { name: 'Ann' });
  const { tasks } = await api('/tasks?limit=1');
  for (let n = 0; n < 6; n += 1) await api('/dispatch', { workType: 'greeting', description: 'greet somebody', message: 'hello' });
  const { dispatches } = await api('/dispatches');
  const { runId } = await api('/workflows/deploy/runs?wait=false', { what: 'the shop' });
  return [`/tasks/${tasks[0].id}`, `/dispatches/${dispatches[0].id}`, `/runs/${runId}`];
}

const scenarios = {
  /** Signs in, registers (and fails to), changes trust, refreshes, removes, signs out. */
  async registry(person) {
    const { page } = person;
    await person.open('/agents?q=x');
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await person.see('this token is not known');
    await page.getByLabel('Token').fill(given.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await person.arrive('Agents');
    await page.waitForURL(/\/factory\/agents\?q=x$/);
    await person.open('/agents');
    await person.see('No agents yet');
    for (const [address, why] of [
      ['not an address', /not an? .*address|address/i],
      ['http://127.0.0.1:9', /127\.0\.0\.1:9/],
      [given.other, /card|JSON/i],
    ]) {
      const dialog = await person.register(address);
      await dialog.locator('.notice.bad').filter({ hasText: why }).waitFor();
      assert.equal(await dialog.getByLabel('Address').inputValue(), address);
      await page.keyboard.press('Escape');
    }
    await person.register(given.agent);
    await person.see('The agent is registered.');
    await page.waitForURL(/\/factory\/agents\/desk\b/);
    assert.equal(await call('desk.echo'), 403, 'it is external');
    await page.locator('#level').selectOption('trusted');
    await page.getByRole('button', { name: 'Change' }).click();
    await person.see('The trust level was changed');
    assert.equal(await call('desk.echo'), 200, 'the next call sees it');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await person.see('The card is unchanged.');
    await page.getByRole('link', { name: 'Agents', exact: true }).click();
    await person.arrive('Agents');
    await page.getByRole('searchbox').fill('nothing like it');
    await person.see('No agents match.');
    await page.getByRole('searchbox').fill('DESK');
    await page.getByRole('link', { name: 'Desk', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Remove desk' }).click();
    await person.see('Remove Desk?');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Remove desk' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Remove' }).click();
    await person.see('No agents yet');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await person.arrive('Sign in to Rialto');
    await person.open('/agents');
    await person.arrive('Sign in to Rialto');
  },

  /** Tries skills: a form of a schema, trouble in it, a stream, a question, a task that is called off. */
  async trying(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents/desk');
    await page.getByRole('link', { name: 'Try greet' }).click();
    const dialog = page.locator('dialog#over');
    await dialog.getByText('Arguments as JSON instead').click();
    await dialog.getByLabel('Arguments as JSON', { exact: true }).fill('{');
    await dialog.getByRole('button', { name: 'Call', exact: true }).click();
    await dialog.locator('.notice.bad').filter({ hasText: 'not JSON' }).waitFor();
    await dialog.getByLabel('Arguments as JSON', { exact: true }).fill('');
    await dialog.getByLabel(/^name/).fill('Ann <b>');
    await dialog.getByRole('button', { name: 'Call', exact: true }).click();
    await person.see('hello Ann <b>');
    await page.locator('.state.good').filter({ hasText: 'completed' }).waitFor();
    await person.open('/agents/desk/try/ask');
    await page.getByLabel('Message').fill('paint');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByLabel('Your answer').waitFor();
    await person.see('which colour?');
    await page.getByLabel('Your answer').fill('red');
    await page.getByRole('button', { name: 'Send' }).click();
    // The result may be there before the answer to the form, which shows the page anew.
    await person.see('Your message was sent.');
    await person.see('you chose red');
    await page.locator('main[data-over]').waitFor();
    // The request, the decision and the upstream call, each in its column.
    await page.locator('.sides').getByText('allowed').waitFor();
    await page.locator('.timeline td[data-label=agent]').filter({ hasText: 'which colour?' }).waitFor();
    await page.locator('.timeline td[data-label=caller]').filter({ hasText: 'red' }).first().waitFor();
    await person.open(below(page));
    await person.shot('task', true);
    await page.locator('.timeline summary').first().click();
    await page.locator('.timeline details[open] pre').first().filter({ hasText: 'desk.ask' }).waitFor();
    await person.checkAll(below(page), 'a task that is over');
    await person.open('/agents/desk/try/slow');
    await page.getByText('Arguments as JSON instead').click();
    await page.getByLabel('Arguments as JSON', { exact: true }).fill('{"ms": 60000}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    // The form has a link of that name too, which leads back to the agent.
    await person.arrive('Task');
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Cancel the task' }).click();
    await page.locator('.state').filter({ hasText: 'canceled' }).waitFor();
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    await person.arrive('Tasks');
    assert.equal(await page.locator('tbody tr').count(), 3);
    await call('desk.fail');
    // The list moves by itself, the newest first.
    await page.locator('tbody tr').nth(3).waitFor();
    await page.locator('tbody tr').first().filter({ hasText: 'fail' }).waitFor();
  },

  /** A result that comes in pieces is seen while it comes. */
  async stream(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents/py13_agent');
    await page.getByRole('link', { name: /^Try count/i }).click();
    const dialog = page.locator('dialog#over');
    await dialog.getByText('Arguments as JSON instead').click();
    await dialog.getByLabel('Arguments as JSON', { exact: true }).fill('{"steps": 80}');
    await dialog.getByRole('button', { name: 'Call', exact: true }).click();
    await person.arrive('Task');
    // A part is seen before the end: both are asked at once, for the next moment it may be over.
    await page.waitForFunction(() => document.querySelector('main:not([data-over]) [data-region=result]')?.textContent.includes('1 2 '));
    await page.locator('.state.good').filter({ hasText: 'completed' }).waitFor();
    await page.locator('[data-region=result]').filter({ hasText: /79\s*80/ }).waitFor();
  },

  /** A hundred calls a second and more for ten seconds: the pages keep up, stay small and answer at once; nothing is missing at the end. */
  async busy(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/tasks');
    const overview = new Person(await page.context().newPage());
    await overview.open('');
    const looks = () => page.evaluate(() => Number(document.documentElement.dataset.looks ?? 0));
    const size = (it) => it.page.evaluate(() => [document.getElementsByTagName('*').length, performance.memory?.usedJSHeapSize ?? 0]);
    const delays = [];
    let isOver = false;
    // How late a page does what is due at once.
    const watch = (async () => {
      while (!isOver) {
        delays.push(await page.evaluate(() => new Promise((done) => {
          const due = performance.now();
          setTimeout(() => done(performance.now() - due), 0);
        })));
        await new Promise((done) => setTimeout(done, 100));
      }
    })();
    const [PIECES, EACH] = [100, 12];
    const begun = Date.now();
    const calls = [];
    for (let sent = 0; sent < PIECES; sent += 1) {
      for (let n = 0; n < EACH; n += 1) calls.push(call('desk.echo', { n }));
      await new Promise((done) => setTimeout(done, Math.max(0, begun + (sent + 1) * 100 - Date.now())));
    }
    const answers = await Promise.all(calls);
    const took = (Date.now() - begun) / 1000;
    isOver = true;
    await watch;
    assert.ok(answers.every((status) => status === 200), `not all were answered: ${answers.find((it) => it !== 200)}`);
    await call('desk.fail');
    await page.locator('tbody tr').first().filter({ hasText: 'failed' }).waitFor();
    const all = PIECES * EACH + 1;
    // Of many records the overview reads some; the journal has every call.
    await overview.page.waitForFunction((all) => {
      const tile = [...document.querySelectorAll('.tile')].find((it) => it.textContent.includes('calls in the last hour'));
      return Math.abs(Number(tile.querySelector('b').textContent.replace(/\D/g, '')) - all) <= all * 0.03;
    }, all);
    let [known, cursor] = [0, ''];
    do {
      const { tasks, next } = await api(`/tasks?limit=500${cursor}`);
      known += tasks.length;
      cursor = next ? `&cursor=${next}` : '';
    } while (cursor);
    assert.equal(known, all, 'nothing is lost');
    const looked = await looks();
    assert.ok(looked >= 1 && looked <= 4 + 2 * took, `it looked ${looked} times in ${took} s`);
    delays.sort((one, other) => one - other);
    const late = delays.at(Math.floor(delays.length * 0.95));
    const [[nodes, heap], [tiles, more]] = [await size(person), await size(overview)];
    process.stderr.write(`${all} calls in ${took.toFixed(1)} s (${(all / took).toFixed(0)} a second); a page was ${late.toFixed(1)} ms late (95 of 100), looked ${looked} times, `
      + `has ${nodes} elements and ${(heap / 1e6).toFixed(1)} MB; the overview ${tiles} and ${(more / 1e6).toFixed(1)} MB\n`);
    // A build without optimization shares its machine with other tests: how fast it is there says nothing.
    if (process.env.RIALTO_RELEASE) {
      assert.ok(all / took >= 100, `only ${(all / took).toFixed(0)} calls a second came`);
      assert.ok(late < 300, `the page answers after ${late} ms`);
    }
    assert.ok(nodes < 3_000 && tiles < 3_000, `${nodes} and ${tiles} elements`);
    assert.ok(heap < 80e6 && more < 80e6, `${heap} and ${more} bytes`);
    assert.deepEqual(overview.trouble, []);
  },

  /** Every page with what it loads is light; when it is seen is told. */
  async weight(person) {
    const { page } = person;
    await person.signIn();
    const told = [];
    for (const path of [...EVERY_PAGE, ...(await something())]) {
      await page.goto('about:blank');
      await person.open(path);
      await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
      const [bytes, elsewhere, paint] = await page.evaluate(() => {
        const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
          // A live page that has begun to listen looks at itself once more.
          .filter((it) => !it.name.includes('/events') && !it.name.startsWith('data:') && it.initiatorType !== 'fetch');
        const bytes = loaded.reduce((sum, it) => sum + it.decodedBodySize, 0);
        const [paint] = performance.getEntriesByName('first-contentful-paint');
        return [bytes, loaded.filter((it) => !it.name.startsWith(location.origin)).map((it) => it.name), paint.startTime];
      });
      told.push([path || '/', bytes, paint]);
      assert.ok(bytes < LIGHT, `${path} weighs ${bytes} bytes`);
      assert.deepEqual(elsewhere, [], `${path} loads something from elsewhere`);
      if (process.env.RIALTO_RELEASE) assert.ok(paint < 100, `${path} is seen after ${paint} ms`);
    }
    for (const [path, bytes, paint] of told) process.stderr.write(`${path}: ${(bytes / 1000).toFixed(0)} kB, seen after ${paint.toFixed(0)} ms\n`);
  },

  /** Tools: deployed from the form, with each mistake told in place; tried out, refreshed and taken back. */
  async tools(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/tools');
    await person.see('No tools yet');
    await page.getByRole('link', { name: 'Add a server or function' }).click();
    await person.arrive('Add an MCP server or function');
    await page.getByLabel('Type').selectOption('function');
    await page.getByLabel('Name').fill('parrot');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.locator('.notice.bad').filter({ hasText: 'url' }).waitFor();
    assert.equal(await page.getByLabel('Name').inputValue(), 'parrot', 'it is filled in as it was');
    await page.getByLabel('Address').fill('http://127.0.0.1:9/');
    await page.getByLabel('Type').selectOption('mcp');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.locator('.notice.bad').filter({ hasText: 'could not be reached' }).waitFor();
    await page.getByLabel('Type').selectOption('function');
    await page.getByLabel('Address').fill('');
    await page.getByLabel(/^Or a command/).fill('cat');
    await page.getByText('Function options').click();
    await page.getByLabel('Description').fill('Says the same <b>again');
    await page.getByLabel('Input schema').fill('{');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.locator('.notice.bad').filter({ hasText: 'input_schema: this is not JSON' }).waitFor();
    await page.getByLabel('Input schema').fill('{"type": "object", "properties": {"word": {"type": "string"}}}');
    await person.check('the form of a deployment that was refused');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await person.see('Successfully added.');
    await person.see('Says the same <b>again');
    await person.checkAll('/tools');
    await page.getByRole('button', { name: 'Refresh parrot' }).click();
    await person.see('The tool list was refreshed.');
    await page.getByRole('link', { name: 'Try parrot' }).click();
    await page.locator('dialog#over').getByLabel(/^word/).fill('lora');
    await page.locator('dialog#over').getByRole('button', { name: 'Call', exact: true }).click();
    await page.locator('[data-region=result]').filter({ hasText: 'lora' }).waitFor();
    await person.open('/tools');
    await page.getByRole('link', { name: 'Remove parrot' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Remove' }).click();
    await person.see('No tools yet');
  },

  /** Policies: checked while they are written, tried out, in force at once; the trail; tokens. */
  async policies(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/policies/new');
    await page.getByLabel('Name').fill('no-desk');
    await page.getByLabel('Policies', { exact: true }).fill('forbid (principal, action, resource');
    await page.locator('#problems.bad').waitFor();
    await page.locator('#problems a').first().click();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'policy-text', 'a problem leads to its place');
    const text = '@id("no-desk") forbid (principal, action == Action::"a2a_invoke", resource);';
    await page.getByLabel('Policies', { exact: true }).fill(text);
    await page.locator('#problems.good').waitFor();
    await page.locator('[data-region=checked]').filter({ hasText: 'Denied' }).filter({ hasText: 'desk.echo' }).waitFor();
    await person.check('a policy that would change something');
    assert.equal(await call('desk.echo'), 200);
    await page.getByRole('button', { name: 'Save' }).click();
    await person.see('The policy is saved and active.');
    assert.equal(await call('desk.echo'), 403, 'the next call goes by it');
    await person.open('/policies/test');
    await page.getByLabel('Target').fill('desk.echo');
    await page.locator('.notice.bad').filter({ hasText: 'Denied' }).waitFor();
    await person.shot('policies');
    await person.open('/policies');
    await page.getByRole('link', { name: 'Remove no-desk.cedar' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Remove' }).click();
    await person.see('Successfully removed.');
    assert.equal(await call('desk.echo'), 200);
    await page.locator('details').filter({ hasText: 'no-desk' }).first().locator('summary').click();
    await page.getByRole('button', { name: /^Restore version/ }).first().click();
    await person.see('The policy is saved and active.');
    assert.equal(await call('desk.echo'), 403, 'what was taken away can be had again');
    await person.open('/policies/no-desk.cedar/remove');
    await page.getByRole('button', { name: 'Remove' }).click();
    await person.see('Successfully removed.');
    await person.open('/audit');
    await page.getByLabel('Outcome').selectOption('denied');
    await page.locator('tbody tr').filter({ hasText: 'denied' }).first().waitFor();
    await page.locator('tbody').filter({ hasNotText: 'completed' }).waitFor();
    await page.getByLabel('Outcome').selectOption('');
    await page.getByLabel('Agent', { exact: true }).fill('desk');
    await page.locator('tbody tr').filter({ hasText: 'desk.echo' }).filter({ hasText: 'completed' }).first().waitFor();
    await page.getByLabel('Caller').fill('nobody like that');
    await person.see('No records match.');
    await page.getByLabel('Caller').fill('owner');
    await page.locator('tbody tr').filter({ hasText: 'owner' }).first().waitFor();
    await page.getByLabel('Since (2h or a time)').fill('soon');
    await page.locator('[data-region=records] .notice.bad').filter({ hasText: 'is not a time' }).waitFor();
    await person.open('/audit');
    await page.getByRole('button', { name: 'Verify audit log' }).click();
    await person.arrive('Audit log verification');
    await person.see('all valid');
    await person.check('the trail, verified');
    // One of the usual policies, and who may call what then.
    await person.open('/policies');
    await page.getByLabel('Template').selectOption('deny-skill');
    await page.getByLabel('Target').fill('desk.nothing');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.locator('.notice.bad').filter({ hasText: 'desk.nothing' }).waitFor();
    await page.getByLabel('Target').fill('desk.fail');
    await page.getByLabel('Caller', { exact: true }).fill('carl');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await person.see('The policy is saved and active.');
    await person.open('/policies/matrix?callers=owner,carl');
    await page.locator('tr').filter({ hasText: 'desk.fail' }).filter({ hasText: /Allowed\s*Denied/ }).waitFor();
    await page.getByLabel('Callers, separated by commas').fill('carl');
    await page.locator('tr').filter({ hasText: 'desk.fail' }).filter({ hasText: 'Denied' }).filter({ hasNotText: 'Allowed' }).waitFor();
    await person.open('/guardrails');
    await page.locator('textarea').first().fill('write to ann@example.com');
    await page.locator('input[name=check][value=pii]').check();
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await person.see('verdict:');
    await person.check('what guardrails found');
    await person.open('/tokens');
    await page.getByLabel('Caller').fill('carl');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const token = await page.locator('#fresh-token').innerText();
    const ask = () => fetch(`${given.url}/api/v1/agents`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await ask()).status, 200);
    await page.locator('tr').filter({ hasText: 'carl' }).getByRole('link', { name: /^Revoke/ }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Revoke' }).click();
    await person.see('The token is revoked.');
    assert.equal((await ask()).status, 401);
  },

  /** Calls that wait: each comes up by itself; one is approved, another denied on the page of its task. */
  async approvals(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/approvals');
    await person.see('No pending approvals');
    await person.check('approvals where nothing waits');
    await call('desk.echo', { pay: 'ACME Ltd', amount: 120 }, given.guest);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.getByRole('link', { name: /Approvals\s*1 waiting/ }).waitFor();
    await page.getByLabel(/^Reason/).fill('the invoice fits');
    // What is typed stays while more comes, also when somebody has gone on to something else.
    await page.getByRole('button', { name: 'Approve' }).focus();
    await call('desk.echo', { pay: 'Another', amount: 1 }, given.guest);
    await page.getByRole('button', { name: 'Deny' }).nth(1).waitFor();
    assert.deepEqual(await page.getByLabel(/^Reason/).evaluateAll((all) => all.map((it) => it.value).sort()), ['', 'the invoice fits']);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Approve');
    await page.locator('.ask').filter({ hasText: 'Another' }).getByRole('button', { name: 'Deny' }).click();
    await person.see('The call is denied.');
    await page.getByLabel(/^Reason/).fill('the invoice fits');
    await page.getByRole('button', { name: 'Approve' }).click();
    await person.see('The call is approved and continues.');
    await page.locator('tbody tr').filter({ hasText: 'the invoice fits' }).filter({ hasText: 'approved' }).waitFor();
    await page.locator('.badge').waitFor({ state: 'detached' });
    await call('desk.echo', { pay: 'Nobody', amount: 9_000 }, given.guest);
    await page.getByRole('button', { name: 'Deny' }).waitFor();
    await person.checkAll('/approvals');
    await person.open('/approvals');
    await person.shot('approvals');
    await page.locator('.ask').getByRole('link').click();
    await person.arrive('Task');
    await person.check('a task that waits for approval');
    await page.getByLabel(/^Reason/).fill('who is that?');
    await page.getByRole('button', { name: 'Deny' }).click();
    await person.see('The call is denied.');
    await page.locator('.state.bad').filter({ hasText: 'failed' }).waitFor();
    await person.see('who is that?');
    await page.getByRole('button', { name: 'Deny' }).waitFor({ state: 'detached' });
  },

  /** A workflow is run from its form: its nodes light up, somebody agrees, a node shows what it was given and made. */
  async workflows(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/new-workflow');
    const text = page.getByLabel('Definition, as YAML or JSON');
    await text.fill('name: hello\nnodes:\n  greet: { tool: desk.greet, args: { name: Ann }, depends_on: [nobody] }\n');
    await page.locator('#problems.bad').filter({ hasText: 'nobody' }).waitFor();
    await page.locator('#problems a').first().click();
    const at = await page.evaluate(() => document.activeElement.value.slice(0, document.activeElement.selectionStart).split('\n').length);
    assert.equal(at, 3, 'a problem leads to its line');
    await text.fill('name: hello\nnodes:\n  greet: { tool: desk.greet, args: { name: Ann } }\n');
    await page.locator('#problems.good').waitFor();
    await page.locator('.graph [data-node=greet]').waitFor();
    await page.getByLabel('Status').selectOption('active');
    await page.getByRole('button', { name: 'Save' }).click();
    await person.see('The workflow is saved.');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await person.arrive('Run of hello');
    await page.locator('main[data-over]').waitFor();
    await page.locator('[data-region=result]').filter({ hasText: 'hello Ann' }).waitFor();
    await person.checkAll('/workflows/hello/edit', 'the editor of a workflow');
    await person.open('/workflows/hello');
    await page.locator('#status').selectOption('archived');
    await page.getByRole('button', { name: 'Change' }).click();
    await person.see('The workflow is archived.');
    await page.getByRole('link', { name: 'Remove' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Remove' }).click();
    await person.see('Successfully removed.');
    await person.open('/workflows');
    await person.check('workflows');
    await page.getByRole('link', { name: 'deploy', exact: true }).click();
    await person.arrive('deploy');
    await person.check('a workflow');
    await page.getByLabel(/^What/).fill('the shop');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await person.see('The run has started.');
    await person.arrive('Run of deploy');
    await person.node('look', 'running');
    await person.node('check', 'completed');
    // It looks until it is told to stop, so that this is seen however slow the machine is.
    await fetch(`${given.agent}/enough`, { method: 'POST' });
    await person.node('look', 'completed');
    await person.node('may', 'held');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    const run = below(page);
    await person.checkAll(run, 'a run');
    await person.open(run);
    await person.shot('workflow');
    await page.locator('[data-node=check]').click();
    await page.locator('#node-check[open]').filter({ hasText: 'hello the shop' }).waitFor();
    await page.waitForURL(/#node-check$/);
    await page.getByRole('button', { name: 'Approve' }).click();
    await person.see('The call is approved and continues.');
    await person.node('deploy', 'completed');
    await page.locator('main[data-over]').waitFor();
    await page.locator('[data-region=result]').filter({ hasText: 'the shop' }).waitFor();
    await page.getByRole('link', { name: 'View as task' }).click();
    await person.arrive('Task');
    await page.getByRole('link', { name: 'View as run' }).click();
    await person.arrive('Run of deploy');
    await page.locator('#node-look summary').click();
    await page.locator('#node-look').getByRole('link', { name: 'Task of this step' }).click();
    await person.arrive('Task');
  },

  /** A run that another server works on is taken up by this one, and no step of it is done twice. */
  async resume(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/workflows/deploy');
    await page.getByLabel(/^What/).fill('the shop');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await person.arrive('Run of deploy');
    await person.node('look', 'running');
    const run = below(page);
    await page.goto(`${given.other}/factory${run}`);
    await page.getByRole('button', { name: 'Resume' }).click();
    await person.see('The run was resumed.');
    await page.getByRole('button', { name: 'Resume' }).waitFor({ state: 'detached' });
    await fetch(`${given.agent}/enough`, { method: 'POST' });
    await person.node('may', 'held');
    await page.getByRole('button', { name: 'Approve' }).click();
    await person.see('The call is approved and continues.');
    await person.node('deploy', 'completed');
    await page.locator('main[data-over] [data-region=result]').filter({ hasText: 'the shop' }).waitFor();
    const { steps } = await api(run);
    assert.deepEqual(steps.map(({ node, attempt }) => `${node} ${attempt}`).sort(), ['check 1', 'deploy 1', 'look 1', 'may 1']);
  },

  /** Every page: nothing keeps anybody out, in both colours and on a phone; pictures of some. */
  async looks(person) {
    const { page } = person;
    await person.signIn();
    const [task, choice, run] = await something();
    for (const path of [...EVERY_PAGE, task, `${task}/cancel`, choice, run, '/workflows/deploy', '/workflows/deploy/edit', '/workflows/deploy/remove']) {
      await person.checkAll(path);
    }
    if (!given.shots) return;
    for (const [name, path, theme, width] of [
      ['overview', '', 'light', 1280], ['agents', '/agents', 'light', 1280], ['agent', '/agents/desk', 'dark', 1280], ['phone', '/agents', 'light', 390],
      ['tasks', '/tasks', 'light', 1280], ['routing', choice, 'light', 1280], ['learnt', '/dispatches', 'light', 1280], ['editor', '/workflows/deploy/edit', 'dark', 1280],
    ]) {
      await person.wear(theme, width);
      await person.open(path);
      await person.shot(name);
    }
  },

  /** Without a mouse. */
  async keyboard(person) {
    const { page } = person;
    const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
    await person.open('');
    await person.focus('token');
    await page.keyboard.type(given.token);
    await page.keyboard.press('Enter');
    await person.arrive('Overview');
    await page.keyboard.press('Tab');
    await person.focus('Skip to the content');
    await page.keyboard.press('Enter');
    await person.focus('main');
    await page.keyboard.press('?');
    await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor({ state: 'hidden' });
    await person.go('a', 'Agents');
    await page.keyboard.press('/');
    await person.focus('q');
    await page.keyboard.type('desk');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Register agent' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog#over[open]').waitFor();
    await person.focus('url');
    await page.keyboard.press('Escape');
    await person.focus('Register agent');
    await page.keyboard.press('Enter');
    await person.focus('url');
    await page.keyboard.type('http://127.0.0.1:9');
    await page.keyboard.press('Enter');
    await page.locator('dialog#over .notice.bad').waitFor();
    await page.keyboard.press('Escape');
    // The main jobs: a skill is tried and its question answered, a workflow is written.
    await person.open('/agents/desk');
    await page.getByRole('link', { name: 'Try ask' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.closest('dialog#over[open]'));
    await page.getByLabel('Message').focus();
    await page.keyboard.type('paint');
    await page.keyboard.press('Tab');
    while (await focused() !== 'Call') await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByLabel('Your answer').waitFor();
    await page.getByLabel('Your answer').focus();
    await page.keyboard.type('blue');
    while (await focused() !== 'Send') await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await person.see('Your message was sent.');
    await person.see('you chose blue');
    await person.go('w', 'Workflows');
    await page.getByRole('link', { name: 'New workflow' }).focus();
    await page.keyboard.press('Enter');
    await person.arrive('New workflow');
    await page.getByLabel('Definition, as YAML or JSON').focus();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('name: keys\nnodes: { a: { type: set, value: 1 } }');
    await page.locator('#problems.good').waitFor();
    while (await focused() !== 'Save') await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await person.see('The workflow is saved.');
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.getByRole('button', { name: 'Theme' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
    await page.reload();
    assert.equal(await theme(), 'dark', 'the colours are remembered');
  },

  /** An agent whose card is full of traps. */
  async hostile(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents');
    await person.register(given.agent, 'trusted');
    await person.see('The agent is registered.');
    await page.waitForURL(/\/factory\/agents\/./);
    const own = new URL(page.url()).pathname;
    // What it is called by and says comes up wherever calls do.
    const trap = '<script>window.pwned=1</script>\u202e" onmouseover="window.pwned=1';
    await call(`${own.split('/').at(-1)}.a-trap`, { long: trap });
    await call(`${own.split('/').at(-1)}.long`, { long: `${trap}${'x'.repeat(10_000)}` });
    await api('/dispatch', { workType: trap, description: `${trap}${'LongName'.repeat(1_250)}`, requiredSkills: [], message: trap }).catch(() => {});
    await api('/workflows', `name: evil\ndescription: ${JSON.stringify(trap + 'y'.repeat(10_000))}\nnodes: { one: { type: set, value: ${JSON.stringify(trap)} } }\n`, 'application/yaml');
    const { tasks } = await api('/tasks?limit=1');
    const pages = [
      '/agents', own.replace('/factory', ''), '/policies/matrix', '/audit', '', '/tools', '/tasks', `/tasks/${tasks[0].id}`, '/dispatches', '/workflows', '/workflows/evil',
      '/workflows/evil/edit', '/approvals',
    ];
    for (const path of pages) {
      await page.setViewportSize({ width: 1280, height: 820 });
      await person.open(path);
      await person.check(path);
      await page.setViewportSize({ width: 390, height: 800 });
      await person.check(`${path} on a phone`);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      // What a form sends back is what it was given; what is shown is not.
      const shown = await page.evaluate(() => document.body.innerText + [...document.querySelectorAll('[title]')].map((it) => it.title).join(''));
      assert.ok(!shown.includes('\u202e'), `nothing turns the text around at ${path}`);
    }
    await page.setViewportSize({ width: 1280, height: 820 });
    await person.open(own.replace('/factory', ''));
    await page.getByRole('link', { name: /^Try/ }).first().click();
    await page.locator('dialog#over[open]').waitFor();
    await person.check('the form of a hostile skill');
  },

  /** The owner of a fresh server: every section is open, and an agent, a policy and a token are made without a shell. */
  async owner(person) {
    const { page } = person;
    await person.signIn();
    for (const path of ['/agents', '/tools', '/tasks', '/workflows', '/approvals', '/dispatches', '/policies', '/guardrails', '/tokens', '/audit']) {
      assert.equal((await person.open(path)).status(), 200, path);
      await page.locator('h1').waitFor();
      assert.equal(await page.getByText('is not allowed to').count(), 0, path);
    }
    await person.open('/agents');
    await person.register(given.agent, 'trusted');
    await person.see('The agent is registered.');
    await person.open('/policies/new');
    await page.getByLabel('Name').fill('nobody-deletes');
    await page.getByLabel('Policies', { exact: true }).fill('@id("nobody-deletes") forbid (principal, action, resource is Skill) when { resource.tags.contains("destructive") };');
    await page.getByRole('button', { name: 'Save' }).click();
    await person.see('nobody-deletes');
    const { policies } = await api('/policies');
    assert.ok(policies.some((it) => it.name === 'nobody-deletes.cedar' && it.org === 'default'), JSON.stringify(policies));
    await person.open('/tokens');
    await page.getByLabel('Caller').fill('ann');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const token = await page.locator('#fresh-token').textContent();
    assert.equal(await call('desk.echo', {}, token.trim()), 200);
  },

  /** Over TLS: the cookie stays with it, a page keeps up with what happens, and every address shown is an encrypted one. */
  async encrypted(person) {
    const { page } = person;
    const stranger = await chromium.launch({ executablePath: PROGRAM, headless: true, args: ARGS });
    await assert.rejects((await stranger.newPage()).goto(given.url), /ERR_CERT_AUTHORITY_INVALID/, 'only the key that is named is trusted');
    await stranger.close();
    await person.signIn();
    assert.equal(page.url(), `${given.url}/factory`);
    assert.equal(await page.evaluate(() => performance.getEntriesByType('navigation')[0].nextHopProtocol), 'h2');
    const [cookie] = (await page.context().cookies()).filter(({ name }) => name === 'rialto_session');
    assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.sameSite], [true, true, 'Strict']);
    const shown = await page.locator('main').innerText();
    assert.ok(shown.includes(`${given.url}/mcp`), shown);
    assert.doesNotMatch(shown, /http:\/\/(localhost|127\.)/);
    await person.open('/tasks');
    await page.waitForFunction(() => Number(document.documentElement.dataset.looks ?? 0) > 0);
    const status = await page.evaluate(async (token) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      return (await fetch('/call/desk.greet', { method: 'POST', headers, body: '{"name":"Ann"}' })).status;
    }, given.token);
    assert.equal(status, 200);
    await page.locator('tbody tr').filter({ hasText: 'greet' }).first().waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await person.arrive('Sign in to Rialto');
  },

  /** Without any script. */
  async plain(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents');
    await page.getByRole('link', { name: /Register/ }).first().click();
    await person.arrive('Register an agent');
    await page.getByLabel('Address').fill('http://127.0.0.1:9');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.locator('.notice.bad').waitFor();
    await page.getByLabel('Address').fill(given.agent);
    await page.getByRole('button', { name: 'Register' }).click();
    await person.see('The agent is registered.');
    await page.locator('#level').selectOption('trusted');
    await page.getByRole('button', { name: 'Change' }).click();
    await person.see('The trust level was changed');
    await page.getByRole('link', { name: 'Try echo' }).click();
    await person.arrive('Try echo');
    await page.getByLabel('Message').fill('hi');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await person.arrive('Task');
    await page.locator('.sides').getByText('allowed').waitFor();
    await person.open('/new-workflow');
    await page.getByLabel('Definition, as YAML or JSON').fill('nodes: { a: { type: nothing } }');
    await page.getByRole('button', { name: 'Check' }).click();
    await page.locator('#problems.bad').filter({ hasText: 'line 1' }).waitFor();
    await page.getByLabel('Definition, as YAML or JSON').fill('name: plain\nnodes: { a: { type: set, value: 1 } }');
    await page.getByRole('button', { name: 'Save' }).click();
    await person.see('The workflow is saved.');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await person.arrive('Run of plain');
    await person.open('/workflows/plain');
    await page.getByRole('link', { name: 'Remove' }).click();
    await person.arrive('Remove plain?');
    await page.getByRole('button', { name: 'Remove' }).click();
    await person.see('Successfully removed.');
    await person.open('/deploy');
    await page.getByLabel('Name').fill('nothing');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.locator('.notice.bad').waitFor();
    await person.open('/policies/new');
    await page.getByLabel('Name').fill('mine');
    await page.getByLabel('Policies', { exact: true }).fill('permit (');
    await page.getByRole('button', { name: 'Check' }).click();
    await page.locator('#problems.bad').waitFor();
    for (const path of EVERY_PAGE.filter((it) => it.startsWith('/agents/') === false)) {
      assert.equal((await person.open(path)).status(), 200, path);
      await page.locator('h1').waitFor();
    }
    await page.getByRole('button', { name: 'Theme' }).click();
    await page.locator('html[data-theme=dark] h1').waitFor();
    await person.open('/agents');
    await page.getByLabel('Select desk').check();
    await page.getByRole('button', { name: 'Refresh all 1' }).click();
    await person.see('All agents were refreshed.');
    await page.getByRole('link', { name: 'Remove desk' }).click();
    await person.arrive('Remove Desk?');
    await page.getByRole('button', { name: 'Remove' }).click();
    await person.see('No agents yet');
  },

  /** Every way in which an agent is not registered is told where the form stands, with what would help. */
  async refusals(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents');
    // A signature that nobody's key has made.
    const forged = { protected: Buffer.from('{"alg":"ES256"}').toString('base64url'), signature: Buffer.alloc(64, 1).toString('base64url') };
    const there = await cards((word) => {
      if (word === 'garbled') return [200, { ...card('Garbled', 'x'), skills: [{ id: 7 }] }];
      if (word === 'forged') return [200, { ...card('Forged', 'http://127.0.0.1:9'), signatures: [forged] }];
      return [Number(word), 'no'];
    });
    for (const [address, ...why] of [
      [await nobody(), /could not be reached/, /check that it is running/],
      [`${there.url}/404`, /HTTP status 404/, /well-known/, /[Cc]ard path|card-path/],
      [`${there.url}/401`, /HTTP status 401/, /[Ss]ecret/],
      [`${there.url}/403`, /HTTP status 403/, /[Ss]ecret/],
      [`${there.url}/500`, /HTTP status 500/, /log/],
      [`${there.url}/garbled`, /not valid/, /skills/],
      [`${there.url}/forged`, /signature does not hold/, /card_keys/],
      ['ftp://agents.example.com', /neither http nor https/, /https:/],
      ['not an address', /address/i],
    ]) {
      const dialog = await person.register(address);
      for (const words of why) await dialog.locator('.notice.bad').filter({ hasText: words }).waitFor();
      assert.equal(await dialog.getByLabel('Address').inputValue(), address);
      await person.check(`the form after ${address}`);
      await page.keyboard.press('Escape');
    }
    there.close();
    assert.equal((await api('/agents')).total, 0, 'nothing is stored');
  },

  /** An address of this machine is not taken from afar, and who can have it taken is told. */
  async private(person) {
    await person.signIn();
    await person.open('/agents');
    const dialog = await person.register(given.agent);
    for (const words of [/rialto agents add/, /allow_private_over_api/]) await dialog.locator('.notice.bad').filter({ hasText: words }).waitFor();
    await person.open('/deploy');
    await person.page.getByLabel('Name').fill('parrot');
    await person.page.getByLabel('Address').fill(`${given.agent}/mcp`);
    await person.page.getByRole('button', { name: 'Add', exact: true }).click();
    await person.page.locator('.notice.bad').filter({ hasText: /rialto tools add/ }).filter({ hasText: /allow_private_over_api/ }).waitFor();
  },

  /** What somebody does on a live page is not undone by what comes in; a page knows when it is alone. */
  async live(person) {
    const { page } = person;
    await page.addInitScript(() => {
      const Real = EventSource;
      window.sources = [];
      window.EventSource = class extends Real { constructor(...given) { super(...given); window.sources.push(this); } };
    });
    await person.signIn();
    for (let n = 0; n < 16; n += 1) await call('desk.echo', { n });
    await person.open('/tasks');
    const looks = () => page.evaluate(() => Number(document.documentElement.dataset.looks ?? 0));
    const lookAgain = async () => {
      const before = await looks();
      await call('desk.echo', { before });
      await page.waitForFunction((before) => Number(document.documentElement.dataset.looks) > before, before);
    };
    await lookAgain();
    const rows = page.locator('tbody tr td:first-child a');
    const focused = () => page.evaluate(() => document.activeElement.href);
    await rows.nth(2).focus();
    for (let n = 0; n < 4; n += 1) {
      const before = await focused();
      assert.ok(before?.includes('/tasks/'), `${before} is a row`);
      await lookAgain();
      assert.equal(await focused(), before, 'whoever points at a row still does');
      const next = await rows.evaluateAll((all) => all[all.indexOf(document.activeElement) + 1].href);
      await page.keyboard.press('Tab');
      assert.equal(await focused(), next, 'and goes on from there');
    }
    // How long ago it was is said anew without any news.
    await page.evaluate(() => {
      // Outside of what a look shows anew.
      const time = document.body.appendChild(document.createElement('time'));
      [time.dateTime, time.dataset.ago] = [new Date(Date.now() - 130_000).toISOString(), ''];
    });
    await page.locator('body > time').filter({ hasText: '2 min ago' }).waitFor();
    // One that nobody looks at keeps no connection.
    const hide = (isHidden) => page.evaluate((isHidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
      document.dispatchEvent(new Event('visibilitychange'));
      return window.sources.map((it) => it.readyState);
    }, isHidden);
    assert.ok((await hide(true)).every((state) => state === 2), 'all are closed');
    const before = await looks();
    await hide(false);
    await page.waitForFunction((before) => Number(document.documentElement.dataset.looks) > before, before);
    assert.notEqual((await page.evaluate(() => window.sources.at(-1).readyState)), 2);
    // Without a clipboard, as over plain HTTP from another machine.
    await person.open('');
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await page.getByRole('button', { name: 'Copy' }).first().click();
    // The button says so for a moment, and whoever listens to the page hears it.
    await page.locator('#aloud').filter({ hasText: /^(Copied|Select and copy)$/ }).waitFor({ state: 'attached' });
    assert.match(await page.evaluate(() => String(getSelection())), /mcp/);
    // The server is gone, and there again.
    await person.open('/tasks');
    await page.context().setOffline(true);
    // A look that was under way before may still end well; the next one, which this asks for, does not.
    await hide(true);
    await hide(false);
    await page.locator('#lost').waitFor();
    await person.check('a page that has lost its server');
    await page.context().setOffline(false);
    await page.locator('#lost').waitFor({ state: 'detached' });
    // The session is over.
    await page.context().clearCookies();
    await hide(true);
    await hide(false);
    await person.arrive('Sign in to Rialto');
    assert.match(page.url(), /next=%2Ffactory%2Ftasks/);
    await person.check('the page to sign in');
    await page.getByLabel('Token').fill(given.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await person.arrive('Tasks');
  },

  /** Pages that are seen now and then keep nobody out either: trouble, what waits, what asks back, and what a guest sees. */
  async corners(person) {
    const { page } = person;
    await person.open('');
    await person.check('the page to sign in');
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await person.see('this token is not known');
    await person.check('the page to sign in, refused');
    await person.signIn();
    for (const path of ['/nowhere', '/agents/nobody', '/tasks/nothing']) {
      assert.equal((await person.open(path)).status(), 404);
      await person.check(path);
      await page.getByRole('link', { name: 'Back' }).waitFor();
    }
    // A card that waits, as the program left it.
    await person.checkAll('/agents/desk', 'a card that waits');
    await person.see('Card change waiting for approval');
    await page.getByRole('button', { name: 'Approve the new card' }).click();
    await person.see('The new card is in use.');
    await page.locator('.skill').filter({ hasText: 'desk.fresh' }).waitFor();
    assert.equal(await call('reviewer.echo'), 403);
    await person.open('/audit?outcome=denied');
    await page.locator('tbody tr td:last-child a').first().click();
    await person.arrive('Denied call');
    await person.checkAll(below(page), 'a refused call');
    const { runId } = await api('/workflows/deploy/runs?wait=false', { what: 'the shop' });
    const { tokens } = await api('/tokens');
    for (const path of ['/policies/starter.cedar/remove', `/tokens/${tokens[0].id}/revoke`, '/tools/parrot/remove', `/runs/${runId}/cancel`]) {
      await person.checkAll(path);
    }
    await person.open(`/runs/${runId}/cancel`);
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await person.see('The run is canceled.');
    // Whoever may not administer is told so where that is, and kept out of nothing else.
    await page.getByRole('button', { name: 'Sign out' }).click();
    await person.arrive('Sign in to Rialto');
    await page.getByLabel('Token').fill(given.guest);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await person.arrive('Overview');
    for (const path of ['', '/agents', '/agents/desk', '/tools', '/tasks', '/workflows', '/dispatches']) await person.checkAll(path, `${path} as a guest sees it`);
    await person.open('/policies');
    await person.see('lacks the scope admin');
    await person.check('policies as a guest sees them');
  },

  /** The cards of many, picked and all: a page shows how far it is. */
  async bulk(person) {
    const { page } = person;
    await person.signIn();
    const there = await cards((word) => [200, card(`Agent ${word}`, `${there.url}/${word}`)]);
    for (let n = 0; n < 25; n += 1) await api('/agents', { url: `${there.url}/${n}`, trust: 'trusted' });
    await person.open('/agents');
    await person.see('25 agents');
    await page.getByLabel('Select agent_3', { exact: true }).check();
    await page.getByLabel('Select agent_4', { exact: true }).check();
    await page.getByRole('button', { name: 'Refresh 2 selected' }).click();
    await person.see('All agents were refreshed.');
    await page.getByLabel('Select all').check();
    await page.getByRole('button', { name: 'Refresh 25 selected' }).waitFor();
    await page.getByLabel('Select all').uncheck();
    await page.getByRole('button', { name: 'Refresh all 25' }).click();
    await person.arrive('Refreshing agents');
    await person.see('25 of 25 agents, done');
    await person.check('many cards, fetched');
    await person.open('/agents?q=agent_1');
    await page.getByRole('button', { name: 'Refresh 11 matching' }).click();
    await person.see('All agents were refreshed.');
    // What was searched for stays.
    await page.waitForURL(/q=agent_1.*done=/);
    there.close();
  },
};

const scenario = scenarios[positionals[0]];
assert.ok(scenario, `there is no scenario ${positionals[0]}; there are ${Object.keys(scenarios).join(', ')}`);
const profile = mkdtempSync(join(tmpdir(), 'rialto-console-'));
// A certificate counts by the SHA-256 of its key: no other one does.
const trusted = given.spki ? [`--ignore-certificate-errors-spki-list=${given.spki}`] : [];
const context = await chromium.launchPersistentContext(profile, {
  executablePath: PROGRAM, headless: true, args: [...ARGS, ...trusted], colorScheme: 'light', viewport: { width: 1280, height: 820 },
  javaScriptEnabled: HAS_SCRIPT,
});
try {
  const person = new Person(context.pages()[0] ?? (await context.newPage()));
  try {
    await scenario(person);
  } catch (error) {
    const seen = await person.page.locator('body').innerText().catch(() => '');
    process.stderr.write(`at ${person.page.url()}, which shows:\n${seen.slice(0, 3_000)}\n${person.trouble.join('\n')}\n`);
    throw error;
  }
  assert.deepEqual(person.trouble, []);
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
// A browser takes its time to close, and whoever reads this waits no longer.
process.stdout.write('as it should be\n');
