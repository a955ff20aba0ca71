import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { copyIdOf } from '../../application/trust-lists/list-copies.ts';
import { pinSigners } from '../../application/trust-lists/verify-trust-list.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { credentialBody } from '../support/populated.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { comesToBe } from './support/keyboard.ts';
import { Visitors } from './support/visitors.ts';

const LIST = 'https://lists.example/attestations.jwt';
const DEGREE = { credentials: [{ id: 'd', format: 'dc+sd-jwt', meta: { vct_values: ['urn:example:degree'] } }] };

describe('trust page', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    await write('/issuer/credentials', credentialBody('degree', 'signing'));
    await write('/verifier/config', { id: 'which-degree', dcql_query: DEGREE, trustAnchors: [{ keyChainId: 'signing' }] });
  });
  async function write(path: string, json: unknown): Promise<void> {
    const made = await visitors.served.service.call('POST', path, { token: visitors.token, json });
    expect(made.status, made.text).to.equal(201);
  }
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('shows in words and in the picture what fails when a certificate or list expires', async () => {
    const page = await visitors.as(['issuance:manage', 'presentation:manage'], 'trust');
    const rests = page.getByRole('list', { name: 'What rests on it' });
    await rests.getByRole('link', { name: 'degree', exact: true }).waitFor();
    await expectAccessible(page, 'trust');
    const authority = page
      .getByRole('list', { name: 'What trust rests on' })
      .getByRole('button', { name: /^authority signing/ })
      .first();
    await authority.focus();
    await page.keyboard.press('Enter');
    await comesToBe(page, `document.activeElement.ariaPressed === 'true'`);
    await page
      .getByRole('status')
      .filter({ hasText: /If .* ends: .*fail/ })
      .waitFor();
    expect(await rests.getByText('fails').count()).to.be.greaterThan(0);
    await expectAccessible(page, 'what fails');
    await page.keyboard.press('Enter');
    await rests.getByText('fails').first().waitFor({ state: 'detached' });
  });

  it('exports the certificates of the tenant, and fits a phone in dark mode', async () => {
    const page = await visitors.as(['issuance:manage', 'presentation:manage'], 'trust', { width: 390, dark: true });
    await page.getByRole('button', { name: 'Copy the certificate of signing (PEM)' }).waitFor();
    await expectFits(page, 'trust at 390 px');
    await expectAccessible(page, 'trust in the dark');
  });

  it('exports authorities as files that other tenants can import', async () => {
    const page = await visitors.as(['issuance:manage'], 'trust');
    const file = async (name: string) => {
      const begun = page.waitForEvent('download');
      await page.getByRole('button', { name, exact: true }).click();
      const download = await begun;
      return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
    };
    const asPem = await file('Download signing as PEM');
    const asDer = await file('Download signing as DER');
    expect([asPem.name, asDer.name]).to.deep.equal(['signing.pem', 'signing.cer']);
    const certificate = new X509Certificate(asPem.bytes);
    expect(certificate.ca).to.equal(true);
    expect(new X509Certificate(asDer.bytes).fingerprint256).to.equal(certificate.fingerprint256);
    const all = await page.getByRole('button', { name: /^Download all \d+ \(PEM\)/ }).innerText();
    const every = await file(all);
    expect(every.bytes.toString().match(/BEGIN CERTIFICATE/g)).to.have.length(Number(/\d+/.exec(all)?.[0]));
    expect(await page.getByRole('heading', { name: 'To be trusted by this tenant' }).count()).to.equal(0);
  });

  it('adds authorities of other tenants to the selected presentation configurations', async () => {
    await write('/verifier/config', { id: 'another', dcql_query: DEGREE });
    const authority = await certify({ name: 'Authority of others', ca: true });
    const page = await visitors.as(['presentation:manage'], 'trust');
    const section = page.getByRole('region', { name: 'To be trusted by this tenant' });
    await section
      .getByLabel('Certificates: files (PEM or DER)')
      .setInputFiles({ name: 'authority.der', mimeType: 'application/pkix-cert', buffer: Buffer.from(authority.certificate, 'base64') });
    await section.getByRole('button', { name: 'Gather it' }).click();
    await section.getByRole('list', { name: 'Gathered' }).getByText('CN=Authority of others').waitFor();
    await section.getByRole('button', { name: 'Have them trusted' }).click();
    await section.getByText('Choose a question.').waitFor();
    for (const id of ['another', 'which-degree']) await section.getByRole('checkbox', { name: id }).check();
    await expectAccessible(page, 'gathered');
    await section.getByRole('button', { name: 'Have them trusted' }).click();
    const outcome = section.getByRole('list', { name: 'What came of it' });
    await outcome.getByText('trusts 1 more.').nth(1).waitFor();
    await page
      .getByRole('list', { name: 'What trust rests on' })
      .getByRole('button', { name: /Authority of others/ })
      .first()
      .waitFor();
    for (const id of ['another', 'which-degree']) {
      const { trustAnchors } = (await visitors.served.service.call('GET', `/verifier/config/${id}`, { token: visitors.token })).body;
      expect(trustAnchors, id).to.have.length(2);
    }
    await section.getByRole('button', { name: 'Have them trusted' }).click();
    await outcome.getByText('trusted them already.').nth(1).waitFor();
    const { service } = visitors.served;
    await service.call('DELETE', '/verifier/config/another', { token: visitors.token });
    await section.getByRole('button', { name: 'Have them trusted' }).click();
    await outcome.getByText('was not changed: there is no presentation configuration').waitFor();
    await outcome.getByText('trusted them already.').waitFor();
  });

  it('shows the retrieval of followed trust lists, and asks to confirm a new signer', async () => {
    const [known, next] = [await certify({ name: 'Operator' }), await certify({ name: 'Next operator' })];
    const trustAnchors = [{ trustList: LIST, signedBy: [pem(known)] }];
    await write('/verifier/config', { id: 'by-list', dcql_query: DEGREE, trustAnchors });
    const kept = visitors.served.service.service.container.get(Store).lists('acme' as TenantId);
    const id = copyIdOf(LIST, pinSigners([pem(known)]));
    const nextUpdate = new Date(Date.now() + 9 * 86_400_000);
    const list = { sequenceNumber: 7, issuedAt: new Date(), nextUpdate, entities: [] };
    const copy = { list, documentHash: 'd', contentHash: 'c', checkedAt: new Date() };
    await kept.keepCopy(id, { uri: LIST }, copy);
    const held = { fault: 'untrusted_signer', reason: 'another one signed it', signer: next.certificate } as const;
    await kept.recordProblem(id, { uri: LIST }, held, new Date());
    const page = await visitors.as(['presentation:manage'], 'trust');
    const lists = page.getByRole('region', { name: 'Lists that were fetched' });
    await lists.getByText('another one signed it').waitFor();
    await expectAccessible(page, 'a list that is held');
    await lists.getByRole('button', { name: 'Confirm the signer' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Who signs this list from now on' });
    await dialog.getByText('a certificate of CN=Next operator').waitFor();
    await expectAccessible(page, 'who signs it');
    await dialog.getByRole('button', { name: 'Confirm the signer' }).click();
    await dialog.waitFor({ state: 'hidden' });
    const { service } = visitors.served;
    const { body } = await service.call('GET', '/verifier/config/by-list', { token: visitors.token });
    expect(body.trustAnchors[0].signedBy).to.have.length(2);
  });

  it('shows all entries in numbered pages, and searches in them', async () => {
    const many = await Promise.all(Array.from({ length: 70 }, (_, number) => certify({ name: `Authority ${number}`, ca: true })));
    const trustAnchors = many.map((one) => ({ certificate: pem(one) }));
    await write('/verifier/config', { id: 'crowd', dcql_query: DEGREE, trustAnchors });
    const page = await visitors.as(['issuance:manage', 'presentation:manage'], 'trust');
    const shown = page.getByRole('list', { name: 'What trust rests on' }).getByRole('listitem');
    await page.getByText(/^50 of \d+ shown/).waitFor();
    const all = Number(/of (\d+)/.exec(await page.getByText(/^50 of \d+ shown/).innerText())?.[1]);
    expect(all).to.be.greaterThan(70);
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText(`${all} of ${all} shown`).waitFor();
    expect(await shown.count()).to.equal(all);
    await page.getByLabel('Kind').selectOption('anchor');
    await page.getByLabel('Called, or used by').fill('CROWD');
    await page.keyboard.press('Enter');
    await page.getByText('50 of 70 shown').waitFor();
    await page.getByLabel('Called, or used by').fill('Authority 69');
    await page.keyboard.press('Enter');
    await page.getByText('1 of 1 shown').waitFor();
    expect(page.url()).to.include('kind=anchor').and.include('q=');
    await expectAccessible(page, 'found');
    await page.getByLabel('Called, or used by').fill('nobody');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing is of this kind and called so.').waitFor();
  });

  it('adds authorities to any number of presentation configurations', async () => {
    for (let number = 0; number < 52; number++) await write('/verifier/config', { id: `many-${number}`, dcql_query: DEGREE });
    const page = await visitors.as(['presentation:manage'], 'trust');
    const section = page.getByRole('region', { name: 'To be trusted by this tenant' });
    await section.getByLabel('Gather also').selectOption('own');
    await section.getByLabel('Which key chain').selectOption('signing');
    await section.getByRole('button', { name: 'Gather it' }).click();
    await section.getByRole('checkbox', { name: 'crowd' }).check();
    expect(await section.getByRole('checkbox').count()).to.equal(50);
    await section.getByRole('button', { name: 'Show more questions' }).click();
    await section.getByRole('checkbox', { name: 'which-degree' }).waitFor();
    expect(await section.getByRole('checkbox', { name: 'crowd' }).isChecked(), 'a choice stays').to.equal(true);
    await section.getByRole('button', { name: 'Have them trusted' }).click();
    await section.getByText('crowd trusts 1 more.').waitFor();
  });

  it('is hidden from clients that the API rejects', async () => {
    const page = await visitors.as(['issuance:offer'], 'trust');
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await page.getByRole('link', { name: 'Trust', exact: true }).count()).to.equal(0);
  });
});
