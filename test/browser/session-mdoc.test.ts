import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { cborInWords, presentedMdocs } from '../../adapters/http/console/app/pages/sessions/mdoc-elements.ts';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { CborMap } from '../../domain/formats/cbor/values.ts';
import { buildConsole } from '../support/console.ts';
import { deviceResponse } from '../support/device.ts';
import { type IsoMdocData, sealed, transcriptOf } from '../support/iso-mdoc-wallet.ts';
import { Shop } from '../support/present.ts';
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

describe('what the console decodes of mdocs', () => {
  const offer = { dcql_query: QUERY };
  const of = (values: unknown, id = 'licence') => presentedMdocs({ offer, credentials: [{ id, values }] });
  const notations = (values: object) =>
    of({ [NAMESPACE]: values })[0]?.namespaces[0]?.elements.map(
      ({ name, notation }) => `${name} ${notation}`,
    );

  it('writes each element in diagnostic notation, and what is masked in no quotes', () => {
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

  it('takes each presentation of a query, and no other formats', () => {
    expect(of([{ a: { b: 1 } }, { a: { b: 2 } }])).to.have.length(2);
    expect(of({ [NAMESPACE]: {} }, 'another')).to.deep.equal([]);
    expect(of(undefined)).to.deep.equal([]);
    expect(presentedMdocs({})).to.deep.equal([]);
  });

  it('leaves what is no CBOR as it came', () => {
    expect(cborInWords('not CBOR at all')).to.equal('not CBOR at all');
    expect(cborInWords(undefined)).to.equal(undefined);
    const bytes = encodeCbor({ version: '1.0', docs: [1, 2] }).toString('base64url');
    expect(cborInWords(bytes)).to.equal('{\n  "docs": [\n    1,\n    2\n  ],\n  "version": "1.0"\n}');
  });
});

describe('the page of a session with an mdoc', function () {
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
    const transcript = transcriptOf(asked, PAGE);
    const shown = decodeCbor(
      Buffer.from(deviceResponse(held, transcript, Object.keys(CLAIMS)), 'base64url'),
    ) as CborMap;
    const response = sealed(asked, PAGE, encodeCbor(shown));
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

  it('has its elements in diagnostic notation, with values once somebody had them shown, and what was asked', async () => {
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
