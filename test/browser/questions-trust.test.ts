import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { presentMdoc } from '../support/mdoc-maker.ts';
import { newKey } from '../support/raw-wallet.ts';
import { makeSdJwt, type SdJwtBase } from '../support/sd-jwt-maker.ts';
import { type Certified, certify, pem } from '../support/test-certificates.ts';
import { createTenant } from '../support/test-service.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

const MANAGER = ['presentation:manage', 'issuance:manage'];
const CARD = 'urn:example:card:1';
const NAMESPACE = 'org.example.card';
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const trusted = (page: Page) => page.getByRole('region', { name: 'Whom it trusts' });
const file = (name: string, content: string | Buffer) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: Buffer.from(content),
});

describe('whom a question trusts, in the console', function () {
  this.timeout(60_000);
  let visitors: Visitors;
  let ca: Certified;
  let signer: Certified;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    ca = await certify({ name: 'Authority of others', ca: true });
    signer = await certify({ name: 'Signer of others', by: ca });
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  const stored = async (id: string) => {
    const { service } = visitors.served;
    return (await service.call('GET', `/verifier/config/${id}`, { token: visitors.token })).body;
  };
  async function question(id: string, more: object = {}): Promise<void> {
    const credentials = [
      { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [CARD] }, claims: [{ path: ['name'] }] },
      {
        id: 'plastic',
        format: 'mso_mdoc',
        meta: { doctype_value: 'org.example.card.1' },
        claims: [{ path: [NAMESPACE, 'name'] }],
      },
    ];
    const json = { id, dcql_query: { credentials }, ...more };
    const made = await visitors.served.service.call('POST', '/verifier/config', {
      token: visitors.token,
      json,
    });
    expect(made.status, made.text).to.equal(201);
  }
  async function save(page: Page): Promise<void> {
    await button(page, 'Save').click();
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
  }

  it('is told by files: several certificates, and in a sentence what is none', async () => {
    await question('by-file');
    const page = await visitors.as(MANAGER, 'questions/by-file');
    const files = trusted(page).getByLabel('Certificates: files (PEM or DER)');
    const give = async (...given: ReturnType<typeof file>[]) => {
      await files.setInputFiles(given);
      await button(page, 'Trust it').click();
    };
    const secret = String(newKey().privateKey.export({ format: 'pem', type: 'pkcs8' }));
    await give(file('both.pem', pem(ca) + secret));
    await trusted(page).getByText('Stop: that is a private key.').waitFor();
    await trusted(page).getByText('both.pem holds a private key. Nothing of it was taken').waitFor();
    await expectAccessible(page, 'refused');
    expect(await page.content()).to.not.include(secret.split('\n')[1] ?? '-');
    await give(file('signer.pem', pem(signer)));
    await trusted(page).getByText('“CN=Signer of others” is no authority (CA)').waitFor();
    await give(file('big.pem', 'x'.repeat(300_000)));
    await trusted(page).getByText('big.pem has more than 256 KiB').waitFor();
    const ended = await certify({ name: 'Ended', ca: true, from: '2020-01-01', until: '2021-01-01' });
    await give(file('ended.der', Buffer.from(ended.certificate, 'base64')));
    await trusted(page).getByText('“CN=Ended” ended on').waitFor();
    const second = await certify({ name: 'Second authority', ca: true });
    await give(
      file('two.pem', pem(ca) + pem(second)),
      file('same.cer', Buffer.from(ca.certificate, 'base64')),
    );
    await trusted(page).getByText('a certificate of CN=Authority of others').waitFor();
    await trusted(page).getByLabel('They are of').selectOption('issuer');
    await give(file('signer.pem', pem(signer)));
    await trusted(page).getByText('a certificate of CN=Signer of others').waitFor();
    await trusted(page)
      .getByLabel(/Only what this very certificate signs/)
      .last()
      .check();
    await save(page);
    const { trustAnchors } = await stored('by-file');
    expect(trustAnchors).to.have.length(4);
    expect(trustAnchors.map(({ pin }: { pin?: boolean }) => pin === true)).to.deep.equal([
      false,
      false,
      false,
      true,
    ]);
  });

  it('is told by a list, and how far that is trusted', async () => {
    await question('by-list');
    const page = await visitors.as(MANAGER, 'questions/by-list');
    await page.getByLabel('Trust also').selectOption('list');
    const region = trusted(page);
    await region.getByLabel('Address of the list').fill('https://lists.example/attestations.jwt');
    await region.getByLabel('or pasted (PEM)').fill(pem(signer));
    await region.getByLabel(/^It is a list of lists/).check();
    await button(page, 'Trust the list').click();
    await region.getByText('the trust list https://lists.example/attestations.jwt').waitFor();
    await region.getByText('How far it is trusted').click();
    await expectAccessible(page, 'a list');
    await region.getByLabel('Of these territories only').fill('DE FR');
    await region.getByLabel('Of these territories only').blur();
    await region.getByLabel(/^The status of a service/).selectOption('issuance');
    await region.getByLabel(/^Types of services/).fill('http://uri.etsi.org/TrstSvc/Svctype/EAA/Q');
    await region.getByLabel(/^Types of services/).blur();
    await save(page);
    const [, list] = (await stored('by-list')).trustAnchors;
    expect(list).to.deep.include({
      trustList: 'https://lists.example/attestations.jwt',
      serviceTypes: ['http://uri.etsi.org/TrstSvc/Svctype/EAA/Q'],
      serviceStatusAt: 'issuance',
      follow: { territories: ['DE', 'FR'] },
    });
    expect(list.signedBy).to.have.length(1);
    await region.getByLabel('Of these territories only').fill('germany');
    await region.getByLabel('Of these territories only').blur();
    await button(page, 'Save').click();
    await region.getByText(/Refused: .*two capital letters/).waitFor();
  });

  it('is told by an own key chain, and by another tenant of this window', async () => {
    await question('by-tenant');
    const page = await visitors.as(MANAGER, 'questions/by-tenant');
    await page.getByLabel('Trust also').selectOption('own');
    await page.getByLabel('Which key chain').selectOption('signing');
    await button(page, 'Trust it').click();
    await trusted(page).getByText('the key chain signing').waitFor();
    await page.getByLabel('Trust also').selectOption('tenant');
    await trusted(page).getByText('Log in as a client of that tenant').waitFor();
    const other = await createTenant(visitors.served.service, 'bravo');
    const json = { clientId: 'reader', roles: ['issuance:manage'], secret: 'a-secret-of-this-very-client' };
    const made = await visitors.served.service.call('POST', '/client', { token: other.token, json });
    expect(made.status, made.text).to.equal(201);
    await button(page, 'Add').click();
    const dialog = page.getByRole('dialog', { name: 'Log in as another client' });
    await dialog.getByLabel('Client id').fill('reader');
    await dialog.getByLabel('Client secret').fill(json.secret);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByLabel('You are').selectOption({ index: 0 });
    await page.goto(`${visitors.served.address}/console#questions/by-tenant`);
    await page.getByLabel('Trust also').selectOption('tenant');
    await page.getByRole('group', { name: 'Authorities of bravo' }).getByLabel('signing').waitFor();
    await expectAccessible(page, 'another tenant');
    await button(page, 'Trust them').click();
    await trusted(page).getByText('a certificate of ').waitFor();
    await save(page);
    const { trustAnchors } = await stored('by-tenant');
    const chains = await visitors.served.service.call('GET', '/key-chain/signing', { token: other.token });
    expect(trustAnchors.map(({ certificate = '' }) => certificate.trim())).to.include(
      chains.body.rootCertificate.trim(),
    );
  });

  it('tells a backend, whose key nobody reads again', async () => {
    await question('by-hook');
    const page = await visitors.as(MANAGER, 'questions/by-hook');
    await page.getByLabel(/^Backend that is told/).fill('http://127.0.0.1:9/hook');
    await page.getByLabel('Header that it bears').fill('X-Key');
    await page.getByLabel('Its value, which is a secret').fill('key-of-the-backend');
    await save(page);
    expect((await stored('by-hook')).webhook).to.deep.equal({
      url: 'http://127.0.0.1:9/hook',
      auth: { type: 'apiKey', config: { headerName: 'X-Key', value: '***' } },
    });
    await page.getByRole('button', { name: /^Calls/ }).click();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const write = page.getByRole('complementary').getByRole('listitem').filter({ hasText: 'POST' }).first();
    await write.getByRole('button', { name: 'Copy as curl' }).click();
    const copied = (await page.evaluate('navigator.clipboard.readText()')) as string;
    expect(copied).to.include('X-Key').and.not.include('key-of-the-backend');
    await page.getByLabel(/^Backend that is told/).fill('');
    await save(page);
    expect((await stored('by-hook')).webhook).to.equal(null);
  });

  describe('when it is tried', () => {
    const base = (more: Partial<SdJwtBase> = {}): SdJwtBase => ({
      issuer: { key: signer, chain: [signer.certificate] },
      holder: newKey(),
      visible: { vct: CARD },
      hidden: { name: 'Erika Secret' },
      audience: 'nobody',
      nonce: 'none',
      now: Math.floor(Date.now() / 1000),
      ...more,
    });
    before(() => question('tried', { trustAnchors: [{ certificate: pem(ca) }] }));

    it('says which queries are answered, by whom, and what nobody looked at', async () => {
      const page = await visitors.as(MANAGER, 'questions/tried');
      const dry = page.getByRole('region', { name: 'Dry run' });
      const attempt = async (text: string) => {
        await dry.getByRole('textbox').fill(text);
        await button(page, 'Hold it against the question').click();
      };
      await attempt(makeSdJwt(base()));
      await dry.getByText('It would answer “card”.').waitFor();
      await dry.getByText('would still lack plastic').waitFor();
      await dry.getByText(/Not looked at, .*nonce, audience.*key binding/).waitFor();
      await dry.getByRole('list', { name: 'Checks for card' }).getByText('issuer trust').click();
      await dry.getByText(/Signer of others/).waitFor();
      await expectAccessible(page, 'tried');
      await attempt(makeSdJwt(base(), { show: ([one = '']) => [`${one.slice(0, -3)}AAA`] }));
      await dry.getByText('It would not answer “card”:').waitFor();
      const stranger = await certify({ name: 'Stranger' });
      await attempt(makeSdJwt(base({ issuer: { key: stranger, chain: [stranger.certificate] } })));
      await dry.getByText('no anchor vouches for the certificate').waitFor();
      await dry.getByText('Add the authority of the issuer to the trust anchors').waitFor();
      await attempt(makeSdJwt(base({ hidden: {} })));
      await dry.getByText('Missing: name.').waitFor();
      await attempt(
        presentMdoc({
          issuer: { key: signer, chain: [signer.certificate] },
          holder: newKey(),
          docType: 'org.example.card.1',
          elements: { [NAMESPACE]: { name: 'Erika Secret' } },
          transcript: Buffer.from([0x80]),
          now: Math.floor(Date.now() / 1000),
        }),
      );
      await dry.getByText('It would answer “plastic”.').waitFor();
      await attempt('nonsense');
      await dry.getByRole('alert').getByText('neither an SD-JWT VC nor an mdoc').first().waitFor();
      await page.getByRole('button', { name: /^Calls/ }).click();
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      const call = page.getByRole('complementary').getByRole('listitem').filter({ hasText: '/try' }).first();
      await call.getByRole('button', { name: 'Copy as curl' }).click();
      expect(await page.evaluate('navigator.clipboard.readText()')).to.include('"presentation":"…"');
    });

    it('is decoded in the window alone by those who may not try it, and fits a phone in the dark', async () => {
      const look = { width: 390, dark: true };
      const page = await visitors.as(['presentation:request'], 'questions/tried', look);
      const dry = page.getByRole('region', { name: 'Dry run' });
      await dry.getByRole('textbox').fill(makeSdJwt(base()));
      await button(page, 'Hold it against the question').click();
      await dry.getByText('It would answer “card”.').waitFor();
      await dry.getByText('Signatures, status, validity and holder are not checked.').waitFor();
      expect(await page.getByLabel('Trust also').count()).to.equal(0);
      await expectFits(page, 'a question at 390 px');
      await expectAccessible(page, 'a question in the dark');
    });
  });
});
