import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { CborMap } from '../../domain/formats/cbor/values.ts';
import { cborInWords, presentedMdocs } from '../../packages/console/src/pages/sessions/mdoc-elements.ts';
import { SimulatedWallet } from '../../packages/wallet/src/core/index.ts';
import { buildConsole } from '../support/console.ts';
import { deviceResponse } from '../support/device.ts';
import { type IsoMdocData, sealResponse, sessionTranscript } from '../support/iso-mdoc-wallet.ts';
import { Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, openWindow, type Watched } from './support/browser.ts';

const SECRET = 'a-secret-of-this-very-client';
const PAGE = 'https://shop.example';
const MDL = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const CLAIMS = { family_name: 'Zyxwvut-Planted', age_over_18: true, issuing_country: 'NO' };
const QUERY = {
  credentials: [
    {
      id: 'licence',
      format: 'mso_mdoc',
      meta: { doctype_value: MDL },
      claims: Object.keys(CLAIMS).map((name) => ({ path: [NAMESPACE, name] })),
    },
  ],
};

describe('decoded mdocs in the console', () => {
  const offer = { dcql_query: QUERY };
  const of = (values: unknown, id = 'licence') => presentedMdocs({ offer, credentials: [{ id, values }] });
  const notations = (values: object) =>
    of({ [NAMESPACE]: values })[0]?.namespaces[0]?.elements.map(({ name, notation }) => `${name} ${notation}`);

  it('contain each element in diagnostic notation, and masked values without quotes', () => {
    expect(notations({ name: 'A"b', sex: 2, over: false, gone: null, portrait: '•••' })).to.deep.equal([
      'name "A\\"b"',
      'sex 2',
      'over false',
      'gone null',
      'portrait •••',
    ]);
    expect(notations({ rights: [{ code: 'B', since: '2020-01-01' }], none: [], empty: {} })).to.deep.equal([
      'rights [\n  {\n    "code": "B",\n    "since": "2020-01-01"\n  }\n]',
      'none []',
      'empty {}',
    ]);
    let deep: unknown = 1;
    for (let level = 0; level < 5_000; level++) deep = [deep];
    expect(notations({ deep })?.[0]).to.include('•••');
  });

  it('include each presentation of a query, and no other formats', () => {
    expect(of([{ a: { b: 1 } }, { a: { b: 2 } }])).to.have.length(2);
    expect(of({ [NAMESPACE]: {} }, 'another')).to.deep.equal([]);
    expect(of(undefined)).to.deep.equal([]);
    expect(presentedMdocs({})).to.deep.equal([]);
  });

  it('leave invalid CBOR unchanged', () => {
    expect(cborInWords('not CBOR at all')).to.equal('not CBOR at all');
    expect(cborInWords(undefined)).to.equal(undefined);
    const bytes = encodeCbor({ version: '1.0', docs: [1, 2] }).toString('base64url');
    expect(cborInWords(bytes)).to.equal('{\n  "docs": [\n    1,\n    2\n  ],\n  "version": "1.0"\n}');
  });
});

describe('session page of an mdoc', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;
  let session: string;
  const open: Watched[] = [];

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    const display = [{ name: 'Licence', locale: 'en' }];
    const config = { format: 'mso_mdoc', docType: MDL, display, claimsByNamespace: { [NAMESPACE]: CLAIMS } };
    const written = await shop.call('POST', '/issuer/credentials', { id: 'mdl', config }, shop.acme.token);
    expect(written.status, written.text).to.equal(201);
    const held = { ...(await shop.issue('mdl')), docType: MDL };
    const asking = { expectedOrigins: [PAGE], dcql_query: QUERY, dcApiProtocols: ['org-iso-mdoc'] };
    await shop.configure({ id: 'licence', ...asking });
    const offered = { response_type: 'dc-api', requestId: 'licence' };
    const made = (await shop.call('POST', '/verifier/offer', offered)).body;
    ({ session } = made);
    const { body } = await shop.service.call('GET', made.uri);
    const asked = body.requests[0].data as IsoMdocData;
    const transcript = sessionTranscript(asked, PAGE);
    const shown = decodeCbor(Buffer.from(deviceResponse(held, transcript, Object.keys(CLAIMS)), 'base64url')) as CborMap;
    const response = sealResponse(asked, PAGE, encodeCbor(shown));
    const answer = await shop.service.call('POST', made.uri, { json: { response } });
    expect(answer.status, answer.text).to.equal(200);
    const client = { clientId: 'asker', roles: ['presentation:request'], secret: SECRET };
    expect((await shop.call('POST', '/client', client)).status).to.equal(201);
  });
  after(async () => {
    await browser?.close();
    await shop?.close();
  });
  afterEach(async () => {
    for (const { faults, context } of open.splice(0)) {
      expect(faults).to.deep.equal([]);
      await context.close();
    }
  });

  it('shows its elements in diagnostic notation, its values on request, and the query', async () => {
    const { address } = shop.service;
    const watched = await openWindow(browser as Browser, address, { width: 390, dark: true });
    open.push(watched);
    const { page } = watched;
    await page.goto(`${address}/console#sessions/${session}`);
    await page.getByLabel('Client id').fill('asker');
    await page.getByLabel('Client secret').fill(SECRET);
    await page.getByRole('button', { name: 'Log in' }).click();
    const elements = page.getByRole('region', { name: 'Elements of mdocs' });
    await elements.getByText('"family_name": •••').waitFor();
    await elements.getByText(MDL).waitFor();
    expect(await page.content()).not.to.include('Zyxwvut');
    await page.locator('summary', { hasText: /^Asked/ }).click();
    await page.getByText('DeviceRequest, in diagnostic notation').waitFor();
    await page.getByText(`"docType": "${MDL}"`).waitFor();
    await page.getByText('EncryptionInfo, in diagnostic notation').waitFor();
    await expectAccessible(page, 'an mdoc');
    await expectFits(page, 'an mdoc at 390 px');
    await page.getByRole('button', { name: 'Show values' }).click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Show values' }).click();
    await elements.getByText('"family_name": "Zyxwvut-Planted"').waitFor();
    await elements.getByText('"age_over_18": true').waitFor();
    const log = await shop.call('GET', `/audit-log?target=${session}`);
    expect(log.body.map(({ action }: { action: string }) => action)).to.deep.equal(['shown']);
    await expectAccessible(page, 'an mdoc with values');
  });
});

const PERSON = 'Zyxwvut-Planted';

describe('session stream in the console', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let shop: Shop;
  const open: Watched[] = [];

  before(async function () {
    browser = await openBrowser();
    if (browser === undefined) return this.skip();
    buildConsole();
    shop = await Shop.open();
    const clients = [
      { token: shop.acme.token, clientId: 'clerk', roles: ['issuance:offer', 'issuance:manage'] },
      { token: shop.token, clientId: 'asker', roles: ['presentation:request', 'presentation:manage'] },
    ];
    for (const { token, ...client } of clients)
      expect((await shop.call('POST', '/client', { ...client, secret: SECRET }, token)).status).to.equal(201);
  });
  after(async () => {
    await browser?.close();
    await shop?.close();
  });
  afterEach(async () => {
    for (const { faults, context } of open.splice(0)) {
      expect(faults).to.deep.equal([]);
      await context.close();
    }
  });

  const look = async (session: string, clientId: string, prepare: (page: Page) => Promise<unknown> = async () => {}) => {
    const { address } = shop.service;
    const watched = await openWindow(browser as Browser, address);
    open.push(watched);
    const { page } = watched;
    await prepare(page);
    await page.goto(`${address}/console#sessions/${session}`);
    await page.getByLabel('Client id').fill(clientId);
    await page.getByLabel('Client secret').fill(SECRET);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    return page;
  };
  const offer = async () => {
    const body = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card-status'],
      credentialClaims: { 'card-status': { type: 'inline', claims: { name: PERSON, age: 36 } } },
    };
    const made = await shop.call('POST', '/issuer/offer', body, shop.acme.token);
    return made.body as { uri: string; session: string };
  };
  const status = (page: Page, name: string) => page.locator('main .badge', { hasText: name }).waitFor();
  const confirm = async (page: Page, name: string) => {
    // It may say of what, for who hears the name alone.
    await page.getByRole('button', { name: new RegExp(`^${name}( \\(.*\\))?$`) }).click();
    await page.locator('dialog[open]').getByRole('button', { name, exact: true }).click();
  };

  it('is followed to the end while a wallet accepts the offer', async () => {
    const { uri, session } = await offer();
    const page = await look(session, 'clerk');
    await status(page, 'active');
    const wallet = new SimulatedWallet();
    await wallet.accept(await wallet.readOffer(uri));
    await status(page, 'completed');
    await page.getByText('Issued: the wallet has what was offered.').waitFor();
    expect(await page.getByRole('img', { name: /QR code/ }).count()).to.equal(0);
  });

  it('is followed again after an interruption', async () => {
    const { uri, session } = await offer();
    let streams = 0;
    const page = await look(session, 'clerk', (at) =>
      at.route('**/events', (route) => {
        streams += 1;
        if (streams === 1) return route.abort('connectionreset');
        if (streams === 2) return route.fulfill({ contentType: 'text/event-stream', body: '' });
        return route.continue();
      }),
    );
    await page.waitForResponse((answer) => answer.url().endsWith('/events') && streams === 3);
    await status(page, 'active');
    await new RawWallet(shop.service, 'acme').code(uri);
    await status(page, 'fetched');
    expect(streams).to.equal(3);
    expect(await page.getByRole('alert').count()).to.equal(0);
  });

  it('shows a session that can be downloaded without claims, and deleted', async () => {
    const { session } = await offer();
    const page = await look(session, 'clerk');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download without claims' }).click();
    const file = await coming;
    expect(file.suggestedFilename()).to.equal(`session-${session}.json`);
    const text = readFileSync(await file.path(), 'utf8');
    expect(JSON.parse(text)).to.include({ id: session, kind: 'issuance' });
    expect(text).not.to.include(PERSON);
    await confirm(page, 'Delete');
    await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
    const gone = await shop.call('GET', `/session/${session}`, undefined, shop.acme.token);
    expect(gone.status).to.equal(404);
  });

  it('shows a session whose failed webhook can be repeated', async () => {
    shop.backend.on('/told', (response) => response.writeHead(503).end());
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
    const asked = await shop.requestPresentation('told');
    await shop.present(asked, await shop.issue());
    const page = await look(asked.session, 'asker');
    await page.getByText(/^Webhook of the presentation: failed \(503, \d+ ms\)/).waitFor();
    shop.backend.on('/told', { json: {} });
    await confirm(page, 'Resend');
    await page.getByText('The delivery is delivered.').waitFor();
    await page.getByText(/^Webhook of the presentation: delivered \(200, \d+ ms\)/).waitFor();
    const calls = shop.backend.calls.filter(({ path }) => path === '/told');
    const keys = new Set(calls.map(({ headers }) => headers['idempotency-key']));
    expect([calls.length > 1, keys.size]).to.deep.equal([true, 1]);
  });
});
