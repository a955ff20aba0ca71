import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createResource, offerBody } from '../support/populated.ts';
import { expectAccessible } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { hindrances, LOOKS, lookAs } from './support/for-everybody.ts';
import { comesToBe, expectFocus, play } from './support/keyboard.ts';
import { Visitors } from './support/visitors.ts';

/** Of what a list leads to, so many are looked at. */
const OF_EACH = 2;

describe('every console page', function () {
  this.timeout(180_000);
  let served: ConsoleService;
  let window: Watched;
  let page: Page;
  const refused: string[] = [];

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    window = await served.open('try');
    ({ page } = window);
    page.on('response', async (answer) => {
      const { authorization = '' } = answer.request().headers();
      // Tokens of the phone are refused by what it does wrong.
      const isOfConsole = /^Bearer /.test(authorization) && !answer.url().includes('-credential');
      if (isOfConsole && [401, 403, 404].includes(answer.status()) && !isOfPhone(answer.url()))
        refused.push(`${answer.status()} ${answer.url()} at ${page.url()}`);
    });
    await play(page);
  });
  after(() => served?.close());

  const isOfPhone = (address: string) => /\/(credential|notification|nonce)$/.test(new URL(address).pathname);
  const hrefs = async (selector: string) =>
    (await page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`)) as string[];
  const goTo = async (place: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.locator('main h1').waitFor();
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
  };

  it('passes axe in every colour mode and sends no rejected request', async () => {
    const clients = (await page.evaluate('[...document.querySelectorAll(".who option")].map(({ value }) => value)')) as string[];
    expect(clients).to.have.length(3);
    const found: string[] = [];
    for (const client of clients) {
      await page.getByLabel('You are').selectOption(client);
      const pages = await hrefs('nav.side a');
      const places = [...pages];
      for (const place of places) {
        await goTo(place);
        if (pages.includes(place)) {
          places.push(...(await hrefs('main table a')).filter((inner) => !places.includes(inner)).slice(0, OF_EACH));
          if (/#(credentials|questions)$/.test(place)) places.push(`${place}/new`);
        }
        for (const look of LOOKS) {
          await lookAs(page, look);
          const faults = await hindrances(page);
          found.push(...faults.map((fault) => `${place} of ${client}, ${look.name}: ${fault}`));
          if (look.media?.forcedColors === 'active') await expectAccessible(page, `${place}, ${look.name}`);
        }
      }
    }
    expect([...new Set(found)].join('\n')).to.equal('');
    expect(refused).to.deep.equal([]);
    expect(window.faults).to.deep.equal([]);
  });
});

const MOST = 25;
const BUTTONS = 'main :is(button, summary, a[href])';

describe('every console button', function () {
  this.timeout(240_000);
  let served: ConsoleService;
  let window: Watched;
  let page: Page;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    window = await served.open('try');
    ({ page } = window);
    await play(page);
  });
  after(() => served?.close());
  afterEach(() => expect(window.faults).to.deep.equal([]));

  const goTo = async (place: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.locator('main h1').waitFor();
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
  };
  const hrefs = async (selector: string) =>
    (await page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`)) as string[];
  const buttons = () => page.locator(`${BUTTONS} >> visible=true`);
  const activeIs = (expression: string) => page.evaluate(`document.activeElement ${expression}`);

  /** Presses the button; a dialog is left again. */
  const tryButton = async (index: number, what: string) => {
    const button = buttons().nth(index);
    await button.focus();
    await page.keyboard.press('Enter');
    await expectFocus(page, what);
    if ((await page.locator('dialog[open]').count()) === 0) return;
    expect(await activeIs('.closest("dialog") !== null'), `within the dialog of ${what}`).to.equal(true);
    await page.keyboard.press('Escape');
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    expect(await activeIs(`.textContent === ${JSON.stringify(await button.textContent())}`), what).to.equal(true);
  };

  it('works by keyboard, opens and closes its dialog, and never loses the focus', async () => {
    const clients = (await page.evaluate('[...document.querySelectorAll(".who option")].map(({ value }) => value)')) as string[];
    let tried = 0;
    for (const client of clients) {
      await page.getByLabel('You are').selectOption(client);
      const pages = (await hrefs('nav.side a')).filter((place) => place !== '#try');
      const places = [...pages];
      for (const place of places) {
        await goTo(place);
        if (pages.includes(place))
          places.push(...(await hrefs('main table a')).filter((inner) => !places.includes(inner)).slice(0, OF_EACH));
        for (let index = 0; index < MOST && index < (await buttons().count()); index++) {
          const button = buttons().nth(index);
          if (!(await button.isEnabled())) continue;
          const name = (await button.innerText()).trim();
          // They leave the console.
          if (/^API reference|^Download/.test(name)) continue;
          await tryButton(index, `${name} at ${place} of ${client}`);
          tried++;
          await page.getByLabel('You are').selectOption(client);
          if (`#${page.url().split('#')[1]}` !== place) await goTo(place);
        }
      }
    }
    expect(tried).to.be.greaterThan(100);
  });
});

const ROLES = ['issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request', 'registrar:manage', 'clients:manage'];
const CARD = {
  id: 'card',
  vct: 'urn:card:1',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }], claims: [{ path: ['name'] }] },
  claims: { name: 'Lovelace' },
  statusManagement: true,
};
const QUESTION = {
  id: 'asks',
  dcql_query: { credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] }, claims: [{ path: ['name'] }] }] },
};

/** An insider looks for what the interface refuses to it. */
describe('console of a client with one role', function () {
  this.timeout(120_000);
  let visitors: Visitors;
  let sessions: readonly string[];

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const post = (path: string, json: object) => createResource(visitors.served.service, visitors.token, path, json);
    await post('/issuer/credentials', CARD);
    await post('/verifier/config', QUESTION);
    const offered = await post('/issuer/offer', offerBody('card'));
    const asked = await post('/verifier/offer', { response_type: 'uri', requestId: 'asks' });
    sessions = [offered.session, asked.session];
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  const visit = async (page: Page, place: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.locator('main h1, main .problem').first().waitFor();
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
  };
  const hrefs = async (page: Page, selector: string) =>
    (await page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`)) as string[];

  for (const role of ROLES) {
    it(`sends no request that ${role} may not send, on each of its pages`, async () => {
      const page = await visitors.as([role], 'health');
      const refused: string[] = [];
      page.on('response', (answer) => {
        if ([401, 403].includes(answer.status())) refused.push(`${answer.url()} at ${page.url()}`);
      });
      const pages = await hrefs(page, 'nav.side a');
      for (const place of pages) {
        await visit(page, place);
        for (const inner of await hrefs(page, 'main table a, main li a')) {
          await visit(page, inner);
          await visit(page, place);
        }
      }
      expect(refused).to.deep.equal([]);
      expect(pages).to.include('#health');
    });
  }

  it('shows no page for a link to a page that the role may not open', async () => {
    const page = await visitors.as(['registrar:manage'], 'health');
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    for (const place of [
      'tenants',
      'tenants/acme',
      'clients',
      'audit',
      'credentials/card',
      'questions/asks',
      'status',
      ...sessions.map((id) => `sessions/${id}`),
    ])
      await visit(page, `#${place}`);
    expect(asked.filter((path) => /^\/(tenant|client|audit-log|issuer|verifier|status-lists|session)/.test(path))).to.deep.equal([]);
  });

  it('keeps unsaved input while the login of another client is requested, but no secret of that client', async () => {
    const page = await visitors.as(['issuance:manage'], 'credentials/new');
    await page.getByLabel('Id', { exact: true }).fill('half-done');
    for (const secret of ['a-secret-half-typed', '']) {
      await page.getByRole('button', { name: 'Add (a client)' }).click();
      const dialog = page.getByRole('dialog', { name: 'Log in as another client' });
      await dialog.waitFor();
      await comesToBe(page, `document.activeElement.name === 'client'`);
      expect(await dialog.getByLabel('Client secret').inputValue()).to.equal('');
      await dialog.getByLabel('Client secret').fill(secret);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      expect(await page.getByLabel('Id', { exact: true }).inputValue()).to.equal('half-done');
    }
  });

  it('deletes the data of a client when another client is selected', async () => {
    const page = await visitors.as(['issuance:manage', 'issuance:offer'], `sessions/${sessions[0]}`);
    await page.getByRole('button', { name: 'Show values' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Show values' }).click();
    await page.getByRole('heading', { name: 'Values' }).waitFor();
    const json = { clientId: 'another', roles: ['presentation:request'], secret: 'a-secret-of-another-client' };
    await visitors.served.service.call('POST', '/client', { token: visitors.token, json });
    await page.getByRole('button', { name: 'Add (a client)' }).click();
    const dialog = page.getByRole('dialog', { name: 'Log in as another client' });
    await dialog.getByLabel('Client id').fill('another');
    await dialog.getByLabel('Client secret').fill(json.secret);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await page.getByLabel('You are').locator('option', { hasText: 'another' }).waitFor({ state: 'attached' });
    expect(await page.getByLabel('You are').inputValue()).to.equal('another');
    await visit(page, `#sessions/${sessions[0]}`);
    await page.locator('main .problem').waitFor();
    expect(await page.locator('main').innerText()).not.to.include('Values');
  });
});
