import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';

type Client = { readonly clientId: string; readonly secret: string };

const MANAGER = ['clients:manage', 'issuance:manage', 'presentation:manage', 'presentation:request'];
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** A diploma whose signature is none: what is only decoded needs no other. */
function diploma(claims: Readonly<Record<string, unknown>>, vct: string): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const disclosures = Object.entries(claims).map(([name, value]) => encode(['salt', name, value]));
  const digests = disclosures.map((text) => createHash('sha256').update(text).digest('base64url'));
  return `${[encode({}), encode({ vct, _sd: digests }), 'none'].join('.')}~${disclosures.join('~')}~`;
}

describe('the questions of the console', function () {
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
  const stored = async (id: string) =>
    (await served.service.call('GET', `/verifier/config/${id}`, { token: await token() })).body;
  const words = () => page.getByRole('region', { name: 'In words' });

  it('says what will stand there, and asks nothing at first', async () => {
    await page.getByText('POST /verifier/config').waitFor();
    await expectAccessible(page, 'empty');
    await button(page, 'New question').click();
    await words().getByText('Asks for nothing yet.').waitFor();
    await expectAccessible(page, 'new');
  });

  it('says in words what it asks for', async () => {
    await page.getByLabel('A credential').selectOption('known diploma');
    await button(page, 'Ask for it').click();
    await page.getByLabel('Family name').check();
    await page.getByLabel('Degree').check();
    await words()
      .getByText('Asks for family name and degree of a credential “Diploma (SD-JWT VC)”.')
      .waitFor();
    expect(await page.getByLabel('Configuration').inputValue()).to.include('"urn:example:diploma:1"');
  });

  it('doubts what asks for more than it needs, or is answered by nobody', async () => {
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

  it('shows refusals at what they are about, and makes it', async () => {
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

  it('holds a pasted credential against what is not saved, and says what it does not check', async () => {
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

  it('asks it, and goes to the session', async () => {
    await button(page, 'Ask it').first().click();
    const dialog = page.getByRole('dialog', { name: 'Ask degree' });
    await dialog.getByRole('button', { name: 'Ask it' }).click();
    await page.waitForURL(/#sessions\/[\w-]+$/);
  });

  it('offers nothing that a client could not do', async () => {
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

  it('fits a small, dark screen, and can be used with the keyboard', async () => {
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
