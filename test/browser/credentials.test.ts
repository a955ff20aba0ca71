import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { openBrowser, type Watched } from './support/browser.ts';
import { ConsoleService } from './support/console-service.ts';

type Client = { readonly clientId: string; readonly secret: string };

async function tenant(served: ConsoleService, id: string, roles: readonly string[]): Promise<Client> {
  const { service } = served;
  const json = { id, name: id, roles };
  const made = await service.call('POST', '/tenant', { token: await service.rootToken(), json });
  return made.body.clients[0] as Client;
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** What is typed elsewhere comes a moment later. */
async function holds(page: Page, label: string, expected: RegExp): Promise<void> {
  const end = Date.now() + 5_000;
  for (;;) {
    const value = await page.getByLabel(label).inputValue();
    if (expected.test(value)) return;
    expect(Date.now(), `${label}: ${value}`).to.be.lessThan(end);
  }
}

/** Types into the JSON beside the form. */
async function type(page: Page, change: (configuration: Record<string, unknown>) => object): Promise<void> {
  const json = page.getByLabel('Configuration');
  await json.fill(JSON.stringify(change(JSON.parse(await json.inputValue()))));
}

async function importFrom(page: Page, from: string, text?: string): Promise<void> {
  await button(page, 'Import claims').first().click();
  const dialog = page.getByRole('dialog', { name: 'Import claims' });
  await dialog.getByLabel('From').selectOption(from);
  if (text !== undefined) await dialog.getByLabel('Sample or schema').fill(text);
  await dialog.getByRole('button', { name: 'Import claims' }).click();
  await dialog.waitFor({ state: 'hidden' });
}

describe('credential configurations page', function () {
  this.timeout(60_000);
  let served: ConsoleService;
  let issuer: Client;
  let window: Watched;
  let page: Page;

  before(async function () {
    const browser = await openBrowser();
    if (browser === undefined) return this.skip();
    served = await ConsoleService.start(browser);
    issuer = await tenant(served, 'school', ['issuance:manage', 'issuance:offer']);
    window = await served.openAs('credentials', issuer.clientId, issuer.secret);
    ({ page } = window);
  });
  after(() => served?.close());
  afterEach(() => expect(window.faults).to.deep.equal([]));

  const stored = async (id: string) => {
    const { service } = served;
    const token = await service.token(issuer.clientId, issuer.secret);
    return (await service.call('GET', `/issuer/credentials/${id}`, { token })).body;
  };

  it('explains the empty list and how to create a credential configuration', async () => {
    await page.getByText('POST /issuer/credentials').waitFor();
    await expectAccessible(page, 'empty');
    await button(page, 'New credential').click();
    await page.getByRole('heading', { name: 'New credential' }).waitFor();
    await expectAccessible(page, 'new');
  });

  it('shows form input in the JSON editor and JSON input in the form', async () => {
    await page.getByLabel('Id', { exact: true }).fill('degree');
    await holds(page, 'Configuration', /"id": "degree"/);
    await type(page, (whole) => ({ ...whole, lifeTime: 5 }));
    await holds(page, 'Lives for so many seconds', /^5$/);
    await page.getByLabel('Configuration').press('End');
    await page.getByLabel('Configuration').pressSequentially('{');
    await page.getByText('No JSON yet').waitFor();
    await page.getByLabel('Name (en)').fill('Degree');
    await page.getByText('The form and this text are the same thing.').waitFor();
  });

  it('shows errors of the service at the affected fields', async () => {
    await importFrom(page, 'diploma');
    await button(page, 'Make it').click();
    const field = page.locator('.field', { hasText: 'Lives for so many seconds' });
    await field.getByText('Refused: at least 60 seconds').waitFor();
    expect(await field.getByRole('spinbutton').getAttribute('aria-invalid')).to.equal('true');
    await expectAccessible(page, 'refused');
    await page.getByLabel('Lives for so many seconds').fill('31536000');
  });

  it('checks whether the text of the card is readable', async () => {
    await page.getByText(/Contrast 1\d\.\d to 1: easy to read/).waitFor();
    await page.getByLabel('Text colour (en)').fill('#12405b');
    await page.getByText('many people cannot read this').waitFor();
    await page.getByLabel('Text colour (en)').fill('#fff');
    await page.getByText('easy to read').waitFor();
  });

  it('creates claims from a sample, and shows which claims let verifiers link presentations', async () => {
    await importFrom(page, 'sample', '{"honours": true, "address": {"town": "Berlin"}}');
    await page.getByText('address › town').waitFor();
    const links = page.getByRole('region', { name: 'What a verifier could link' });
    expect(await links.innerText()).to.include('The place in the status list');
    await page.getByLabel('honours can be withheld').uncheck();
    await links.getByText('Honours.').waitFor();
    await page.getByLabel('Language, such as de').fill('de');
    await button(page, 'Add language').click();
    await page.getByLabel('Label of degree in de').fill('Abschluss');
    const table = await page.locator('.claims').boundingBox();
    const remove = await button(page, 'Remove degree').boundingBox();
    const right = (box: typeof table) => Number(box?.x) + Number(box?.width);
    expect(right(remove), 'it is seen without scrolling').to.be.at.most(right(table));
  });

  it('offers the backends that deliver claims and receive notifications', async () => {
    const backends = page.getByRole('region', { name: 'Your backends' });
    const claims = backends.getByLabel('Backend that knows the claims (webhook)');
    await claims.fill('https://backend.example/claims');
    await backends.getByLabel('Header that it bears').fill('Authorization');
    await backends.getByLabel('Its value, which is a secret').fill('Bearer of-the-backend');
    await holds(page, 'Configuration', /"claimsWebhook": \{\s*"url": "https:\/\/backend.example\/claims"/);
    await backends.getByLabel('Backend that is told what became of it (webhook)').fill('https://backend.example/told');
    await expectAccessible(page, 'with backends');
    await claims.fill('');
    await holds(page, 'Configuration', /^(?![\s\S]*claimsWebhook)/);
  });

  it('creates a credential configuration', async () => {
    await button(page, 'Make it').click();
    await page.getByRole('heading', { name: 'degree', exact: true }).waitFor();
    await button(page, 'Offer it').first().waitFor();
    await expectAccessible(page, 'made');
    const { vct, config, disclosureFrame, notificationWebhook } = await stored('degree');
    expect(notificationWebhook.url).to.equal('https://backend.example/told');
    expect(vct).to.equal('urn:example:diploma:1');
    expect(disclosureFrame._sd).to.include('degree').and.not.to.include('honours');
    expect(disclosureFrame.address._sd).to.deep.equal(['town']);
    const degree = config.claims.find(({ path }: { path: string[] }) => path[0] === 'degree');
    expect(degree.display).to.deep.equal([
      { name: 'Degree', locale: 'en' },
      { name: 'Abschluss', locale: 'de' },
    ]);
    expect(degree.mandatory).to.equal(true);
  });

  it('does not overwrite a concurrent change of a credential configuration', async () => {
    const { service } = served;
    const token = await service.token(issuer.clientId, issuer.secret);
    await page.getByLabel('Description, for administrators').fill('mine');
    const json = { description: 'theirs' };
    await service.call('PATCH', '/issuer/credentials/degree', { token, json });
    await button(page, 'Save').click();
    await page.getByText('nothing of theirs was overwritten').waitFor();
    expect((await stored('degree')).description).to.equal('theirs');
    await button(page, 'read it again').click();
    await page.getByLabel('Description, for administrators').fill('ours');
    await button(page, 'Save').click();
    await page.getByText('Save it before you offer it.').waitFor({ state: 'hidden' });
    expect((await stored('degree')).description).to.equal('ours');
  });

  it('names the party that each warning concerns, and saves in spite of warnings', async () => {
    await page.getByLabel('Bound to a key of the wallet').uncheck();
    await button(page, 'Save').click();
    const told = page.getByRole('region', { name: 'Notes' });
    await told.getByText(/^Saved, with (one note|\d+ notes):$/).waitFor();
    await told.getByText('It concerns verifiers, and holders whose credential is copied.').waitFor();
    expect(await page.getByText('somebody will refuse what comes of it').count()).to.equal(0);
    await page.getByLabel('Bound to a key of the wallet').check();
    await button(page, 'Save').click();
    await page.getByText('Save it before you offer it.').waitFor({ state: 'hidden' });
  });

  it('rejects a credential configuration with an existing id', async () => {
    await page.goto(`${served.address}/console#credentials/new`);
    await page.getByLabel('Id', { exact: true }).fill('degree');
    await button(page, 'Make it').click();
    await page.getByText('There is one with the id degree already').waitFor();
  });

  it('creates an offer and opens its session', async () => {
    await page.goto(`${served.address}/console#credentials`);
    await page.getByRole('link', { name: 'degree' }).click();
    await button(page, 'Offer it').first().click();
    const dialog = page.getByRole('dialog', { name: 'Offer degree' });
    expect(await dialog.getByLabel('Claims of whom').inputValue()).to.include('Lovelace');
    await expectAccessible(page, 'the offer');
    await dialog.getByRole('button', { name: 'Offer it' }).click();
    await page.waitForURL(/#sessions\/[\w-]+$/);
  });

  it('creates a driving licence whose elements are all selectively disclosable', async () => {
    await page.goto(`${served.address}/console#credentials/new`);
    await importFrom(page, 'mdl');
    await page.getByLabel('Id', { exact: true }).fill('licence');
    await page.getByLabel('Name (en)').fill('Driving licence');
    await button(page, 'Make it').click();
    await page.getByRole('heading', { name: 'licence', exact: true }).waitFor();
    const { config } = await stored('licence');
    expect(config.docType).to.equal('org.iso.18013.5.1.mDL');
    expect(config.claims[0].path).to.deep.equal(['org.iso.18013.5.1', 'family_name']);
    await button(page, 'Offer it').first().click();
    await page.getByRole('dialog', { name: 'Offer licence' }).getByRole('button', { name: 'Offer it' }).click();
    await page.waitForURL(/#sessions\/[\w-]+$/);
  });

  it('deletes a credential configuration after a confirmation', async () => {
    await page.goto(`${served.address}/console#credentials/licence`);
    await button(page, 'Delete').first().click();
    const dialog = page.getByRole('dialog', { name: 'Delete licence?' });
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('link', { name: 'degree' }).waitFor();
    expect(await page.getByRole('link', { name: 'licence' }).count()).to.equal(0);
  });

  it('has no page for a client without the right to read credential configurations', async () => {
    const verifier = await tenant(served, 'shop', ['presentation:manage']);
    const other = await served.openAs('credentials', verifier.clientId, verifier.secret);
    expect(await other.page.getByRole('link', { name: 'Credentials' }).count()).to.equal(0);
    await other.context.close();
  });

  it('fits a small, dark screen and works by keyboard', async () => {
    const look = { width: 390, height: 844, dark: true };
    const small = await served.openAs('credentials', issuer.clientId, issuer.secret, look);
    await expectFits(small.page, 'the list');
    await expectAccessible(small.page, 'the list, dark');
    await small.page.getByRole('link', { name: 'degree' }).focus();
    await small.page.keyboard.press('Enter');
    await small.page.getByLabel('degree can be withheld').focus();
    await small.page.keyboard.press('Space');
    await expectFits(small.page, 'the form');
    await expectAccessible(small.page, 'the form, dark');
    await button(small.page, 'Save').focus();
    await small.page.keyboard.press('Enter');
    await button(small.page, 'Offer it').first().waitFor();
    expect((await stored('degree')).disclosureFrame._sd).not.to.include('degree');
    expect(small.faults).to.deep.equal([]);
  });
});
