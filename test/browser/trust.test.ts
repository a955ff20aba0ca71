import { expect } from 'chai';
import { credentialBody } from '../support/populated.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

describe('the page about trust', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const write = async (path: string, json: unknown) => {
      const made = await visitors.served.service.call('POST', path, { token: visitors.token, json });
      expect(made.status, made.text).to.equal(201);
    };
    await write('/issuer/credentials', credentialBody('degree', 'signing'));
    await write('/verifier/config', {
      id: 'which-degree',
      dcql_query: {
        credentials: [{ id: 'd', format: 'dc+sd-jwt', meta: { vct_values: ['urn:example:degree'] } }],
      },
      trustAnchors: [{ keyChainId: 'signing' }],
    });
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('says what fails when something ends, in words and in the picture', async () => {
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
    expect(await authority.getAttribute('aria-pressed')).to.equal('true');
    await page
      .getByRole('status')
      .filter({ hasText: /If .* ends: .*fail/ })
      .waitFor();
    expect(await rests.getByText('fails').count()).to.be.greaterThan(0);
    await expectAccessible(page, 'what fails');
    await page.keyboard.press('Enter');
    await rests.getByText('fails').first().waitFor({ state: 'detached' });
  });

  it('gives out the certificates of the tenant, and fits a phone in the dark', async () => {
    const page = await visitors.as(['issuance:manage'], 'trust', { width: 390, dark: true });
    await page.getByRole('button', { name: 'Copy the certificate of signing (PEM)' }).waitFor();
    await expectFits(page, 'trust at 390 px');
    await expectAccessible(page, 'trust in the dark');
  });

  it('is not shown to those whom the interface refuses', async () => {
    const page = await visitors.as(['issuance:offer'], 'trust');
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await page.getByRole('link', { name: 'Trust', exact: true }).count()).to.equal(0);
  });
});
