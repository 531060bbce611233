// A person at the console, played by Chromium: opens pages of a real server, clicks, types, and says what is not as it should be.
//
//     console.mjs SCENARIO --url URL [--token TOKEN] [--agent URL] [--other URL] [--guest TOKEN] [--shots FOLDER]
//
// It ends with 0 when everything was as it should be; else it says on stderr what was not.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import './end_with_parent.mjs';

const require = createRequire(`${process.env.RIALTO_INTEROP_HOME}/console/package.json`);
const { chromium } = require('playwright-core');
const axe = require('axe-core').source;

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: 'string' }, token: { type: 'string' }, agent: { type: 'string' }, other: { type: 'string' }, guest: { type: 'string' }, shots: { type: 'string' } },
});
const PATIENCE = 20_000;
const EVERY_PAGE = [
  '', '/agents', '/register', '/tools', '/tasks', '/workflows', '/approvals', '/dispatches', '/policies', '/policies/new', '/policies/starter.cedar',
  '/policies/test?action=a2a_invoke&target=desk.echo', '/policies/matrix', '/guardrails', '/tokens', '/audit',
  '/agents/desk', '/agents/desk/try/greet', '/agents/desk/remove',
];

class Person {
  constructor(page) {
    this.page = page;
    this.trouble = [];
    page.setDefaultTimeout(PATIENCE);
    page.on('pageerror', (error) => this.trouble.push(`script: ${error}`));
    page.on('dialog', (dialog) => { this.trouble.push(`a dialog of the browser: ${dialog.message()}`); dialog.dismiss(); });
    page.on('console', (line) => {
      // A form that is refused is an answer like any other; the browser says so in red.
      if (line.type() === 'error' && !/status of (4\d\d|50[0-9])/.test(line.text())) this.trouble.push(`console: ${line.text()}`);
    });
  }

  open(path) { return this.page.goto(`${given.url}/factory${path}`); }

  async signIn() {
    if (!given.token) return this.open('');
    await this.open('');
    await this.page.getByLabel('Token').fill(given.token);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
    await this.page.getByRole('heading', { name: 'Overview' }).waitFor();
  }

  see(text) { return this.page.getByText(text).first().waitFor(); }

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
    const found = await this.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const bad = found.violations.filter(({ impact }) => ['moderate', 'serious', 'critical'].includes(impact));
    const told = bad.map((it) => `${it.id} (${it.impact}): ${it.help}: ${it.nodes.slice(0, 3).map((node) => `${node.html}\n ${node.failureSummary}`).join(' | ')}`);
    assert.deepEqual(told, [], `axe at ${what}`);
    const [wide, room] = await this.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${what} is wider (${wide}) than the window (${room})`);
  }

  shot(name) {
    if (!given.shots) return undefined;
    return this.page.screenshot({ path: join(given.shots, `${name}.png`) });
  }
}

/** Calls a skill from outside, as any client would. */
async function call(skill, body = {}, token = given.token) {
  const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(`${given.url}/call/${skill}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.status;
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
    await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor();
    assert.ok(page.url().endsWith('/factory/agents?q=x'), page.url());
    await person.open('/agents');
    await person.see('No agents yet');
    for (const [address, why] of [
      ['not an address', /not an? .*address|address/i],
      ['http://127.0.0.1:9', /127\.0\.0\.1:9/],
      [given.other, /card|JSON/i],
    ]) {
      const dialog = await person.register(address);
      await dialog.locator('.said.bad').filter({ hasText: why }).waitFor();
      assert.equal(await dialog.getByLabel('Address').inputValue(), address);
      await page.keyboard.press('Escape');
    }
    await person.register(given.agent);
    await person.see('The agent is registered.');
    assert.ok(page.url().includes('/factory/agents/desk'), page.url());
    assert.equal(await call('desk.echo'), 403, 'it is external');
    await page.locator('#level').selectOption('trusted');
    await page.getByRole('button', { name: 'Change' }).click();
    await person.see('the next call goes by it');
    assert.equal(await call('desk.echo'), 200, 'the next call sees it');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await person.see('The card was fetched again and is as it was.');
    await page.getByRole('link', { name: 'Agents', exact: true }).click();
    await page.getByRole('searchbox').fill('nothing like it');
    await person.see('No agent fits.');
    await page.getByRole('searchbox').fill('DESK');
    await page.getByRole('link', { name: 'Desk', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Remove desk' }).click();
    await person.see('Remove Desk?');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Remove desk' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Remove' }).click();
    await person.see('No agents yet');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Rialto' }).waitFor();
    await person.open('/agents');
    await page.getByRole('heading', { name: 'Sign in to Rialto' }).waitFor();
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
    await dialog.getByRole('button', { name: 'Call it' }).click();
    await dialog.locator('.said.bad').filter({ hasText: 'not JSON' }).waitFor();
    await dialog.getByLabel('Arguments as JSON', { exact: true }).fill('');
    await dialog.getByLabel(/^name/).fill('Ann <b>');
    await dialog.getByRole('button', { name: 'Call it' }).click();
    await person.see('hello Ann <b>');
    await page.locator('.state.good').filter({ hasText: 'completed' }).waitFor();
    await person.shot('task');
    await person.open('/agents/desk/try/ask');
    await page.getByLabel('Message').fill('paint');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.getByLabel('Your answer').waitFor();
    await person.see('which colour?');
    await page.getByLabel('Your answer').fill('red');
    await page.getByRole('button', { name: 'Send' }).click();
    await person.see('you chose red');
    await person.open('/agents/desk/try/slow');
    await page.getByText('Arguments as JSON instead').click();
    await page.getByLabel('Arguments as JSON', { exact: true }).fill('{"ms": 60000}');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Cancel the task' }).click();
    await page.locator('.state').filter({ hasText: 'canceled' }).waitFor();
    await page.getByRole('link', { name: 'Tasks' }).click();
    assert.equal(await page.locator('tbody tr').count(), 3);
    await call('desk.fail');
    await page.locator('tbody tr').nth(3).waitFor();
    assert.match(await page.locator('tbody tr').first().innerText(), /fail/, 'the list moves by itself, the newest first');
  },

  /** A result that comes in pieces is seen while it comes. */
  async stream(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents/py13_agent');
    await page.getByRole('link', { name: /^Try count/i }).click();
    const dialog = page.locator('dialog#over');
    await dialog.getByText('Arguments as JSON instead').click();
    await dialog.getByLabel('Arguments as JSON', { exact: true }).fill('{"steps": 40}');
    await dialog.getByRole('button', { name: 'Call it' }).click();
    await page.getByRole('heading', { name: 'Task' }).waitFor();
    await page.locator('[data-region=result]').filter({ hasText: /1 2 / }).waitFor();
    assert.equal(await page.locator('main[data-over]').count(), 0, 'a part is seen before the end');
    await page.locator('.state.good').filter({ hasText: 'completed' }).waitFor();
    assert.match(await page.locator('[data-region=result]').innerText(), /39\s*40/);
  },

  /** Three hundred calls in some seconds: the list keeps up, and looks now and then, not three hundred times. */
  async busy(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/tasks');
    const looks = () => page.evaluate(() => Number(document.documentElement.dataset.looks ?? 0));
    const begun = Date.now();
    for (let sent = 0; sent < 300; sent += 10) {
      await Promise.all(Array.from({ length: 10 }, () => call('desk.echo')));
    }
    const took = (Date.now() - begun) / 1000;
    await call('desk.fail');
    await page.locator('tbody tr').first().filter({ hasText: 'failed' }).waitFor();
    const looked = await looks();
    assert.ok(looked >= 1 && looked <= 4 + 2 * took, `it looked ${looked} times in ${took} s`);
  },

  /** Policies: checked while they are written, tried out, in force at once; the trail; tokens. */
  async policies(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/policies/new');
    await page.getByLabel('Name').fill('no-desk');
    await page.getByLabel('Policies', { exact: true }).fill('forbid (principal, action, resource');
    await page.locator('#problems.bad').waitFor();
    const text = '@id("no-desk") forbid (principal, action == Action::"a2a_invoke", resource);';
    await page.getByLabel('Policies', { exact: true }).fill(text);
    await page.locator('#problems.good').waitFor();
    assert.equal(await call('desk.echo'), 200);
    await page.getByRole('button', { name: 'Save' }).click();
    await person.see('The policy is saved and in force.');
    assert.equal(await call('desk.echo'), 403, 'the next call goes by it');
    await person.open('/policies/test');
    await page.getByLabel('Target').fill('desk.echo');
    await page.locator('.said.bad').filter({ hasText: 'Refused' }).waitFor();
    await person.shot('policies');
    await person.open('/policies');
    await page.getByRole('link', { name: 'Remove no-desk.cedar' }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Remove' }).click();
    await person.see('It is removed.');
    assert.equal(await call('desk.echo'), 200);
    await person.open('/audit');
    await page.getByLabel('Outcome').selectOption('denied');
    await page.locator('tbody tr').filter({ hasText: 'denied' }).first().waitFor();
    await page.locator('tbody').filter({ hasNotText: 'completed' }).waitFor();
    await page.getByRole('button', { name: 'Verify the trail' }).click();
    await person.see('all as they were written');
    await person.open('/tokens');
    await page.getByLabel('Caller').fill('carl');
    await page.getByRole('button', { name: 'Make' }).click();
    const token = await page.locator('#fresh-token').innerText();
    const ask = () => fetch(`${given.url}/api/v1/agents`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await ask()).status, 200);
    await page.locator('tr').filter({ hasText: 'carl' }).getByRole('link', { name: /^Revoke/ }).click();
    await page.locator('dialog#over').getByRole('button', { name: 'Revoke' }).click();
    await person.see('lets nobody in any more');
    assert.equal((await ask()).status, 401);
  },

  /** Calls that wait: each comes up by itself; one is approved, another denied on the page of its task. */
  async approvals(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/approvals');
    await person.see('Nothing waits');
    await person.check('approvals where nothing waits');
    await call('desk.echo', { pay: 'ACME Ltd', amount: 120 }, given.guest);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.getByRole('link', { name: /Approvals\s*1 waiting/ }).waitFor();
    await page.getByLabel(/^Reason/).fill('the invoice fits');
    await page.getByRole('button', { name: 'Approve' }).click();
    await person.see('It is approved, and goes on.');
    await page.locator('tbody tr').filter({ hasText: 'the invoice fits' }).filter({ hasText: 'approved' }).waitFor();
    await page.locator('.badge').waitFor({ state: 'detached' });
    await call('desk.echo', { pay: 'Nobody', amount: 9_000 }, given.guest);
    await page.getByRole('button', { name: 'Deny' }).waitFor();
    for (const [theme, width] of [['light', 390], ['dark', 1280], ['light', 1280]]) {
      await page.setViewportSize({ width, height: 820 });
      await page.context().addCookies([{ name: 'rialto_theme', value: theme, url: given.url }]);
      await person.open('/approvals');
      await person.check(`approvals (${theme}, ${width})`);
    }
    await person.shot('approvals');
    await page.locator('.ask').getByRole('link').click();
    await page.getByRole('heading', { name: 'Task' }).waitFor();
    await person.check('a task that waits for approval');
    await page.getByLabel(/^Reason/).fill('who is that?');
    await page.getByRole('button', { name: 'Deny' }).click();
    await person.see('It is denied.');
    await page.locator('.state.bad').filter({ hasText: 'failed' }).waitFor();
    await person.see('who is that?');
    assert.equal(await page.getByRole('button', { name: 'Deny' }).count(), 0);
  },

  /** A workflow is run from its form: its nodes light up, somebody agrees, a node shows what it was given and made. */
  async workflows(person) {
    const { page } = person;
    const node = (id, state) => page.locator('.graph').getByText(`${id} · ${state}`).waitFor();
    await person.signIn();
    await person.open('/workflows');
    await person.check('workflows');
    await page.getByRole('link', { name: 'deploy', exact: true }).click();
    await person.check('a workflow');
    await page.getByLabel(/^What/).fill('the shop');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await person.see('The run has begun.');
    await node('look', 'running');
    await node('check', 'completed');
    await node('look', 'completed');
    await node('may', 'held');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    const run = new URL(page.url()).pathname.replace('/factory', '');
    for (const [theme, width] of [['light', 390], ['dark', 1280], ['light', 1280]]) {
      await page.setViewportSize({ width, height: 820 });
      await page.context().addCookies([{ name: 'rialto_theme', value: theme, url: given.url }]);
      await person.open(run);
      await person.check(`a run (${theme}, ${width})`);
    }
    await person.shot('workflow');
    await page.locator('[data-node=check]').click();
    await page.locator('#node-check[open]').filter({ hasText: 'hello the shop' }).waitFor();
    assert.ok(page.url().endsWith('#node-check'), page.url());
    await page.getByRole('button', { name: 'Approve' }).click();
    await person.see('It is approved, and goes on.');
    await node('deploy', 'completed');
    await page.locator('main[data-over]').waitFor();
    await page.locator('[data-region=result]').filter({ hasText: 'the shop' }).waitFor();
    await page.getByRole('link', { name: 'As a task' }).click();
    await page.getByRole('link', { name: 'As a run' }).click();
    await page.getByRole('heading', { name: 'Run of deploy' }).waitFor();
    await page.locator('#node-look summary').click();
    await page.locator('#node-look').getByRole('link', { name: 'Its task' }).click();
    await page.getByRole('heading', { name: 'Task' }).waitFor();
  },

  /** Every page: nothing keeps anybody out, in both colours and on a phone; pictures of some. */
  async looks(person) {
    const { page } = person;
    await person.signIn();
    for (const [theme, width, height] of [['light', 1280, 820], ['dark', 1280, 820], ['light', 390, 800]]) {
      await page.setViewportSize({ width, height });
      await page.context().addCookies([{ name: 'rialto_theme', value: theme, url: given.url }]);
      for (const path of EVERY_PAGE) {
        const answer = await person.open(path);
        assert.equal(answer.status(), 200, path);
        await person.check(`${path || '/'} (${theme}, ${width})`);
      }
    }
    if (!given.shots) return;
    for (const [name, path, theme, width] of [
      ['overview', '', 'light', 1280], ['agents', '/agents', 'light', 1280], ['agent', '/agents/desk', 'dark', 1280], ['phone', '/agents', 'light', 390],
    ]) {
      await page.setViewportSize({ width, height: 820 });
      await page.context().addCookies([{ name: 'rialto_theme', value: theme, url: given.url }]);
      await person.open(path);
      await person.shot(name);
    }
  },

  /** Without a mouse. */
  async keyboard(person) {
    const { page } = person;
    const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
    await person.open('');
    if (given.token) {
      await page.keyboard.type(given.token);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    }
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to the content');
    await page.keyboard.press('Enter');
    assert.equal(await focused(), 'main');
    await page.keyboard.press('?');
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor();
    await page.keyboard.press('/');
    assert.equal(await focused(), 'q');
    await page.keyboard.type('desk');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Register agent' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog#over[open]').waitFor();
    await page.waitForFunction(() => document.activeElement.id === 'url');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.activeElement.textContent === 'Register agent');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.id === 'url');
    await page.keyboard.type('http://127.0.0.1:9');
    await page.keyboard.press('Enter');
    await page.locator('dialog#over .said.bad').waitFor();
    await page.keyboard.press('Escape');
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.getByRole('button', { name: 'Light or dark' }).focus();
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
    const own = new URL(page.url()).pathname;
    for (const path of ['/agents', own.replace('/factory', ''), '/policies/matrix', '/audit', '']) {
      await page.setViewportSize({ width: 1280, height: 820 });
      await person.open(path);
      await person.check(path);
      await page.setViewportSize({ width: 390, height: 800 });
      await person.check(`${path} on a phone`);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      assert.ok(!(await page.content()).includes('\u202e'), 'nothing turns the text around');
    }
    await page.setViewportSize({ width: 1280, height: 820 });
    await person.open(own.replace('/factory', ''));
    await page.getByRole('link', { name: /^Try/ }).first().click();
    await page.locator('dialog#over[open]').waitFor();
    await person.check('the form of a hostile skill');
  },

  /** Without any script. */
  async plain(person) {
    const { page } = person;
    await person.signIn();
    await person.open('/agents');
    await page.getByRole('link', { name: /Register/ }).first().click();
    await page.getByLabel('Address').fill('http://127.0.0.1:9');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.locator('.said.bad').waitFor();
    await page.getByLabel('Address').fill(given.agent);
    await page.getByRole('button', { name: 'Register' }).click();
    await person.see('The agent is registered.');
    await page.locator('#level').selectOption('trusted');
    await page.getByRole('button', { name: 'Change' }).click();
    await person.see('the next call goes by it');
    await page.getByRole('link', { name: 'Try echo' }).click();
    await page.getByLabel('Message').fill('hi');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.getByRole('heading', { name: 'Task' }).waitFor();
    await page.getByRole('button', { name: 'Light or dark' }).click();
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
    await person.open('/agents');
    await page.getByLabel('Pick desk').check();
    await page.getByRole('button', { name: 'Refresh', exact: true }).click();
    await person.see('All cards were fetched again.');
    await page.getByRole('link', { name: 'Remove desk' }).click();
    await page.getByRole('button', { name: 'Remove' }).click();
    await person.see('No agents yet');
  },
};

const scenario = scenarios[positionals[0]];
assert.ok(scenario, `there is no scenario ${positionals[0]}; there are ${Object.keys(scenarios).join(', ')}`);
const profile = mkdtempSync(join(tmpdir(), 'rialto-console-'));
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const context = await chromium.launchPersistentContext(profile, {
  executablePath: '/usr/bin/chromium', headless: true, args, colorScheme: 'light', viewport: { width: 1280, height: 820 },
  javaScriptEnabled: positionals[0] !== 'plain',
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
  process.stdout.write('as it should be\n');
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
