import { expect } from 'chai';
import sinon from 'sinon';
import { Cipher } from '../../application/ports/cipher.ts';
import { created, credentialBody } from '../support/populated.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const COUNT = 300;
/** Documents that a request may open: its own, and those that the tenant has one of. */
const MOST_OPENED = 20;

describe(`A tenant with ${COUNT} credential configurations`, () => {
  let service: TestService;
  let token: string;
  const opened = sinon.spy();

  /** With claims, so that all of them together take a large part of the memory of configurations. */
  const claims = Object.fromEntries([
    ['given_name', 'Ada'],
    ...Array.from({ length: 120 }, (_, at) => [`claim_${at}`, 'x'.repeat(60)]),
  ]);
  const body = (index: number) => ({
    ...credentialBody(`c${index}`, 'signing'),
    claims,
    disclosureFrame: { _sd: Object.keys(claims) },
  });

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    for (let index = 0; index < COUNT; index++)
      await created(service, token, '/issuer/credentials', body(index));
    const cipher = service.service.container.get(Cipher);
    const open = cipher.open.bind(cipher);
    sinon.stub(cipher, 'open').callsFake((...given) => {
      opened();
      return open(...given);
    });
  });
  after(async () => {
    sinon.restore();
    await service.close();
  });

  const openedBy = async (work: () => Promise<unknown>) => {
    opened.resetHistory();
    await work();
    return opened.callCount;
  };
  const change = (index: number) =>
    service.call('PATCH', `/issuer/credentials/c${index}`, {
      token,
      json: { description: `change ${index}` },
    });
  const metadata = () => service.call('GET', '/.well-known/openid-credential-issuer/acme');

  it('changes one of them without reading the others again', async () => {
    await change(0);
    await metadata();
    for (const index of [1, 2, 3]) {
      expect(await openedBy(() => change(index)), 'change').to.be.below(MOST_OPENED);
      expect(await openedBy(metadata), 'metadata').to.be.below(MOST_OPENED);
    }
  });

  it('makes offers without reading them again', async () => {
    await metadata();
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['c5'] };
    for (let at = 0; at < 3; at++) {
      const count = await openedBy(() => created(service, token, '/issuer/offer', offer));
      expect(count, 'offer').to.be.below(MOST_OPENED);
      expect(await openedBy(metadata), 'metadata').to.be.below(MOST_OPENED);
    }
  });

  it('shows the change of one of them at once', async () => {
    expect((await change(7)).status).to.equal(200);
    const { body: shown } = await service.call('GET', '/issuer/credentials/c7', { token });
    expect(shown.description).to.equal('change 7');
    const { body: deleted } = await service.call('DELETE', '/issuer/credentials/c7', { token });
    expect(deleted).to.deep.equal({ id: 'c7' });
    expect((await service.call('GET', '/issuer/credentials/c7', { token })).status).to.equal(404);
  });
});
