import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { presentMdoc } from '../support/mdoc-maker.ts';
import { newKey } from '../support/raw-wallet.ts';
import { makeSdJwt, type SdJwtBase } from '../support/sd-jwt-maker.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';
import { comesToBe } from './support/keyboard.ts';
import { button, CARD, MANAGER, makeQuestion, NAMESPACE, Visitors } from './support/visitors.ts';

type Client = { readonly clientId: string; readonly secret: string };

/** A diploma whose signature is none: what is only decoded needs no other. */
function diploma(claims: Readonly<Record<string, unknown>>, vct: string): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const disclosures = Object.entries(claims).map(([name, value]) => encode(['salt', name, value]));
  const digests = disclosures.map((text) => createHash('sha256').update(text).digest('base64url'));
  return `${[encode({}), encode({ vct, _sd: digests }), 'none'].join('.')}~${disclosures.join('~')}~`;
}

describe('presentation configurations page', function () {
  const MANAGER = ['clients:manage', 'issuance:manage', 'presentation:manage', 'presentation:request'];
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  this.timeout(60_000);
  let served: ConsoleService;
  let verifier: Client;
  let window: Watched;
  let page: Page;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    const { service } = served;
    const json = { id: 'shop', name: 'Shop', roles: MANAGER };
    const made = await service.call('POST', '/tenant', { token: await service.rootToken(), json });
    verifier = made.body.clients[0];
    window = await served.openAs('questions', verifier.clientId, verifier.secret);
    ({ page } = window);
  });
  after(() => served?.close());
  afterEach(() => expect(window.faults).to.deep.equal([]));

  const token = () => served.service.token(verifier.clientId, verifier.secret);
  const stored = async (id: string) => (await served.service.call('GET', `/verifier/config/${id}`, { token: await token() })).body;
  const words = () => page.getByRole('region', { name: 'In words' });

  it('explains the empty list, and requests no claims at first', async () => {
    await page.getByText('POST /verifier/config').waitFor();
    await expectAccessible(page, 'empty');
    await button(page, 'New question').click();
    await words().getByText('Asks for nothing yet.').waitFor();
    await expectAccessible(page, 'new');
  });

  it('describes in words what a configuration requests', async () => {
    await page.getByLabel('A credential').selectOption('known diploma');
    await button(page, 'Ask for it').click();
    await page.getByLabel('Family name').check();
    await page.getByLabel('Degree').check();
    await words().getByText('Asks for family name and degree of a credential “Diploma (SD-JWT VC)”.').waitFor();
    expect(await page.getByLabel('Configuration').inputValue()).to.include('"urn:example:diploma:1"');
  });

  it('warns of excessive requests and of credential types that do not exist', async () => {
    await words().getByText('No card of this service answers “diploma”').waitFor();
    await words().getByText('It does not say why it asks.').waitFor();
    await page.getByLabel('Purpose, for users').fill('Who applies says which degree they have');
    await words().getByText('It does not say why it asks.').waitFor({ state: 'hidden' });
    await page.getByLabel('A credential').selectOption('known mdl');
    await button(page, 'Ask for it').click();
    const licence = page.locator('fieldset', { hasText: 'Mobile driving licence' });
    await licence.getByLabel('Date of birth').check();
    await words().getByText('ask for age_over_18').waitFor();
    await licence.getByRole('button', { name: /^Do not ask for/ }).click();
    await words().getByText('ask for age_over_18').waitFor({ state: 'hidden' });
  });

  it('shows errors at their fields, and creates a presentation configuration', async () => {
    await page.getByLabel('Id', { exact: true }).fill('degree');
    const trusted = page.getByRole('region', { name: 'Whom it trusts' });
    await trusted.getByLabel('or pasted (PEM)').fill('no certificate');
    await button(page, 'Trust it').click();
    await trusted.getByText('The text is no certificate').waitFor();
    const json = page.getByLabel('Configuration');
    const broken = [{ ownAuthorities: true }, { certificate: 'no certificate' }];
    await json.fill(JSON.stringify({ ...JSON.parse(await json.inputValue()), trustAnchors: broken }));
    await button(page, 'Make it').click();
    await trusted.getByText('Refused:').waitFor();
    await expectAccessible(page, 'refused');
    await page.getByRole('button', { name: /^Remove a certificate/ }).click();
    await button(page, 'Make it').click();
    await page.getByRole('heading', { name: 'degree', exact: true }).waitFor();
    await button(page, 'Ask it').first().waitFor();
    const { dcql_query, trustAnchors, purpose } = await stored('degree');
    expect(dcql_query.credentials[0].claims).to.deep.equal([{ path: ['family_name'] }, { path: ['degree'] }]);
    expect(trustAnchors).to.deep.equal([{ ownAuthorities: true }]);
    expect(purpose[0].lang).to.equal('en');
  });

  it('checks a pasted credential against unsaved changes, and lists the checks that were skipped', async () => {
    await page.getByLabel('Description, for administrators').fill('not saved');
    const dry = page.getByRole('region', { name: 'Dry run' });
    const paste = async (text: string) => {
      await dry.getByRole('textbox').fill(text);
      await button(page, 'Hold it against the question').click();
    };
    await paste(diploma({ family_name: 'Lovelace', degree: 'MSc' }, 'urn:example:diploma:1'));
    await dry.getByText('It would answer “diploma”.').waitFor();
    await paste(diploma({ family_name: 'Lovelace' }, 'urn:example:diploma:1'));
    await dry.getByText('Missing: degree.').waitFor();
    await paste(diploma({ degree: 'MSc' }, 'urn:example:other'));
    await dry.getByText('It answers nothing.').waitFor();
    await paste('nonsense');
    await dry.getByText('This is no SD-JWT VC.').waitFor();
    await dry.getByText('Signatures, status, validity and holder are not checked.').waitFor();
    await expectAccessible(page, 'after a dry run');
    await page.getByLabel('Description, for administrators').fill('');
  });

  it('creates a presentation request and opens its session', async () => {
    await button(page, 'Ask it').first().click();
    const dialog = page.getByRole('dialog', { name: 'Ask degree' });
    await dialog.getByRole('button', { name: 'Ask it' }).click();
    await page.waitForURL(/#sessions\/[\w-]+$/);
  });

  it('hides actions that the client may not perform', async () => {
    const { service } = served;
    const secret = 'secret-of-the-counter-0123456789';
    const json = { clientId: 'counter', roles: ['presentation:request'], secret };
    const made = await service.call('POST', '/client', { token: await token(), json });
    expect(made.status, made.text).to.equal(201);
    const other = await served.openAs('questions', 'counter', secret);
    await other.page.getByRole('link', { name: 'degree' }).waitFor();
    expect(await button(other.page, 'New question').count()).to.equal(0);
    await other.page.getByRole('link', { name: 'degree' }).click();
    await button(other.page, 'Ask it').first().waitFor();
    expect(await button(other.page, 'Save').count()).to.equal(0);
    expect(other.faults).to.deep.equal([]);
    await other.context.close();
  });

  it('fits a small, dark screen and works by keyboard', async () => {
    const look = { width: 390, height: 844, dark: true };
    const small = await served.openAs('questions', verifier.clientId, verifier.secret, look);
    await small.page.getByRole('link', { name: 'degree' }).focus();
    await expectFits(small.page, 'the list');
    await expectAccessible(small.page, 'the list, dark');
    await small.page.keyboard.press('Enter');
    await small.page.getByLabel('Grade').focus();
    await small.page.keyboard.press('Space');
    await expectFits(small.page, 'the form');
    await expectAccessible(small.page, 'the form, dark');
    await button(small.page, 'Save').focus();
    await small.page.keyboard.press('Enter');
    await button(small.page, 'Ask it').first().waitFor();
    expect((await stored('degree')).dcql_query.credentials[0].claims).to.have.length(3);
    expect(small.faults).to.deep.equal([]);
  });
});

describe('trial of a presentation configuration in the console', function () {
  this.timeout(60_000);
  let visitors: Visitors;
  let signer: CertifiedKey;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const ca = await certify({ name: 'Authority of others', ca: true });
    signer = await certify({ name: 'Signer of others', by: ca });
    await makeQuestion(visitors, 'tried', { trustAnchors: [{ certificate: pem(ca) }] });
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

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
  it('shows which queries are satisfied, by which credential, and which checks were skipped', async () => {
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
    await attempt(makeSdJwt(base(), { changeDisclosures: ([one = '']) => [`${one.slice(0, -3)}AAA`] }));
    await dry.getByText('It would not answer “card”:').waitFor();
    const stranger = await certify({ name: 'Stranger' });
    await attempt(makeSdJwt(base({ issuer: { key: stranger, chain: [stranger.certificate] } })));
    await dry.getByText('The issuer is not trusted').waitFor();
    await dry.getByText('Add its authority to the trust anchors').waitFor();
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
    await comesToBe(
      page,
      `navigator.clipboard.readText().then((text) => text.includes('"presentation":"…"'))`,
      'the call is in the clipboard, without the presentation',
    );
  });

  it('decodes only in the window for clients without the right to a trial, and fits a phone in dark mode', async () => {
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
