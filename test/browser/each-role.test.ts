import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { created, offerBody } from '../support/populated.ts';
import { comesToBe } from './support/keyboard.ts';
import { Visitors } from './support/visitors.ts';

const ROLES = [
  'issuance:manage',
  'issuance:offer',
  'presentation:manage',
  'presentation:request',
  'registrar:manage',
  'clients:manage',
];
const CARD = {
  id: 'card',
  vct: 'urn:card:1',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }], claims: [{ path: ['name'] }] },
  claims: { name: 'Lovelace' },
  statusManagement: true,
};
const QUESTION = {
  id: 'asks',
  dcql_query: {
    credentials: [
      { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] }, claims: [{ path: ['name'] }] },
    ],
  },
};

/** An insider looks for what the interface refuses to it. */
describe('the console of a client with one role', function () {
  this.timeout(120_000);
  let visitors: Visitors;
  let sessions: readonly string[];

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const post = (path: string, json: object) => created(visitors.served.service, visitors.token, path, json);
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
    (await page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ hash }) => hash)`,
    )) as string[];

  for (const role of ROLES) {
    it(`asks for nothing that ${role} may not have, on each of its pages`, async () => {
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

  it('has no page for what a link leads to and the role does not open', async () => {
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
    expect(
      asked.filter((path) => /^\/(tenant|client|audit-log|issuer|verifier|status-lists|session)/.test(path)),
    ).to.deep.equal([]);
  });

  it('keeps what is half done while another client is asked for, and nothing of its secret', async () => {
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

  it('forgets what one client saw when another is chosen', async () => {
    const page = await visitors.as(['issuance:manage', 'issuance:offer'], `sessions/${sessions[0]}`);
    await page.getByRole('button', { name: 'Show values' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Show values' }).click();
    await page.getByRole('heading', { name: 'Values' }).waitFor();
    const json = {
      clientId: 'another',
      roles: ['presentation:request'],
      secret: 'a-secret-of-another-client',
    };
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
