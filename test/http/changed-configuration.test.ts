import { expect } from 'chai';
import { bind, formOf, type Held, Shop } from '../support/present.ts';

describe('a presentation configuration that changes while a wallet is asked', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  const changes: readonly [string, () => Promise<unknown>][] = [
    ['is deleted', () => shop.call('DELETE', '/verifier/config/q')],
    [
      'gets other trust anchors',
      () => shop.call('PATCH', '/verifier/config/q', { trustAnchors: [{ ownAuthorities: true }] }),
    ],
    ['gets other values', () => shop.call('PATCH', '/verifier/config/q', { values: 'disclosed' })],
    ['enforces type metadata', () => shop.call('PATCH', '/verifier/config/q', { typeMetadata: 'enforced' })],
    [
      'demands certificate revocation',
      () => shop.call('PATCH', '/verifier/config/q', { certificateRevocation: 'required' }),
    ],
  ];
  for (const [what, change] of changes) {
    it(`is verified by its former rules when it ${what}`, async () => {
      await shop.configure({ id: 'q' });
      const asked = await shop.ask('q');
      await change();
      const answer = await shop.present(asked, held);
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await shop.session(asked.session);
      expect(status).to.equal('completed');
      expect(credentials[0].values, 'values: requested').to.deep.equal({ name: 'Ada' });
    });
  }

  it('applies its new rules to the next request', async () => {
    await shop.configure({ id: 'q' });
    await shop.call('PATCH', '/verifier/config/q', { trustAnchors: [{ ownAuthorities: true }] });
    const asked = await shop.ask('q');
    expect((await shop.present(asked, held)).status).to.equal(400);
    expect((await shop.session(asked.session))['failure'].message).to.include('untrusted_chain');
  });

  it('is verified by its former rules through the Digital Credentials API', async () => {
    await shop.configure({ id: 'page', expectedOrigins: ['https://shop.example'], dcApiRequest: 'unsigned' });
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'page' });
    const { data } = made.body.dcApi.requests[0];
    await shop.call('DELETE', '/verifier/config/page');
    const payload = { ...data, client_id: 'origin:https://shop.example' };
    const asked = { session: made.body.session, uri: '', url: '', text: '', header: {}, payload };
    const form = await formOf(
      { ...asked, payload: { ...payload, state: undefined } },
      { card: [bind(asked, held)] },
    );
    const answer = await shop.service.call('POST', made.body.uri, { json: form });
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(made.body.session))['status']).to.equal('completed');
  });

  it('keeps no secret of the policy in the session as it is shown', async () => {
    await shop.configure({ id: 'q' });
    const asked = await shop.ask('q');
    expect(await shop.session(asked.session)).to.not.have.property('policy');
  });
});
