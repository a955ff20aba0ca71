import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { newKey } from '../support/raw-wallet.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { createTenant } from '../support/test-service.ts';
import { expectAccessible } from './support/accessible.ts';
import { button, MANAGER, makeQuestion, Visitors } from './support/visitors.ts';

const trusted = (page: Page) => page.getByRole('region', { name: 'Whom it trusts' });
const file = (name: string, content: string | Buffer) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(content) });

describe('trusted issuers of a presentation configuration in the console', function () {
  this.timeout(60_000);
  let visitors: Visitors;
  let ca: CertifiedKey;
  let signer: CertifiedKey;

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
  const question = (id: string) => makeQuestion(visitors, id);
  async function save(page: Page): Promise<void> {
    await button(page, 'Save').click();
    await page.getByRole('status').getByText('Saved').waitFor();
  }

  it('are set by certificate files, with a message for an invalid file', async () => {
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
    const refused = trusted(page).getByText('“CN=Signer of others” is no authority (CA)');
    await refused.waitFor();
    await files.setInputFiles([file('another.pem', pem(ca))]);
    await refused.waitFor({ state: 'detached' });
    await give(file('big.pem', 'x'.repeat(300_000)));
    await trusted(page).getByText('big.pem has more than 256 KiB').waitFor();
    const ended = await certify({ name: 'Ended', ca: true, from: '2020-01-01', until: '2021-01-01' });
    await give(file('ended.der', Buffer.from(ended.certificate, 'base64')));
    await trusted(page).getByText('“CN=Ended” ended on').waitFor();
    const second = await certify({ name: 'Second authority', ca: true });
    await give(file('two.pem', pem(ca) + pem(second)), file('same.cer', Buffer.from(ca.certificate, 'base64')));
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
    expect(trustAnchors.map(({ pin }: { pin?: boolean }) => pin === true)).to.deep.equal([false, false, false, true]);
  });

  it('are set to another tenant of the window with one click', async () => {
    const { service } = visitors.served;
    const made = await service.call('POST', '/tenant', {
      token: await service.rootToken(),
      json: { id: 'school', name: 'School', roles: ['issuance:manage'] },
    });
    const [{ clientId, secret }] = made.body.clients;
    const token = await service.token(clientId, secret);
    const claims = [{ path: ['grade'], display: [{ name: 'Grade', locale: 'en' }] }];
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }], claims };
    // The service names its type.
    const issued = await service.call('POST', '/issuer/credentials', { token, json: { id: 'badge', config } });
    expect(issued.status, issued.text).to.equal(201);
    const hosted = (await service.call('GET', '/school/vct/badge')).body.vct;
    const page = await visitors.as(MANAGER, 'questions');
    const me = await page.getByLabel('You are').inputValue();
    await page.getByRole('button', { name: /^Add/ }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Log in as another client' });
    await dialog.getByLabel('Client id').fill(clientId);
    await dialog.getByLabel('Client secret').fill(secret);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByLabel('You are').selectOption(me);
    await page.getByRole('link', { name: 'Questions', exact: true }).click();
    await button(page, 'New question').click();
    await page.getByLabel('Id', { exact: true }).fill('which-grade');
    await page.locator('optgroup[label="Issued by school"]').waitFor({ state: 'attached' });
    await page.getByLabel('A credential').selectOption('of school/badge');
    await button(page, 'Ask for it').click();
    await page.getByLabel('Grade').check();
    await page.getByText('its authority is not among those whom the question trusts').waitFor();
    await expectAccessible(page, 'proposed');
    await page.getByRole('button', { name: /^Trust the authority of school/ }).click();
    await page.getByText('school issues it, and its authority is trusted.').waitFor();
    await button(page, 'Make it').click();
    await button(page, 'Ask it').first().waitFor();
    const { dcql_query, trustAnchors } = await stored('which-grade');
    expect(dcql_query.credentials[0]).to.deep.include({ id: 'badge', meta: { vct_values: [hosted] } });
    const chains = (await service.call('GET', '/key-chain', { token })).body;
    const signing = chains.find(({ usages }: { usages: string[] }) => usages.includes('signing'));
    expect(trustAnchors[1].certificate).to.equal(signing.rootCertificate);
  });

  it('are set by a trust list and the level of trust in it', async () => {
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

  it('are set to a key chain of the tenant and to another tenant of the window', async () => {
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
    await page.getByRole('button', { name: 'Add (a client)' }).click();
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
    expect(trustAnchors.map(({ certificate = '' }) => certificate.trim())).to.include(chains.body.rootCertificate.trim());
  });

  it('are combined with a webhook whose API key is never returned', async () => {
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
});
