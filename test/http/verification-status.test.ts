import { expect } from 'chai';
import { ask, decode, type Held, issue, present, QUERY, Shop } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('the status of a presented credential, through HTTP', () => {
  describe('issued and verified by one service', () => {
    let shop: Shop;

    before(async () => {
      shop = await Shop.open({ statusListConfig: { bits: 2 } });
    });
    after(() => shop.close());

    const change = async (held: Held, status: number) => {
      const json = { sessionId: held.session, status };
      const answer = await shop.call('POST', '/session/revoke', json, shop.acme.token);
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.body).to.deep.equal({ ...json, changed: 1 });
    };
    const attempt = async (held: Held) => {
      const asked = await shop.ask();
      const { status, text } = await shop.present(asked, held);
      expect(text, 'the wallet learns no reason').to.not.match(/revoked|suspended/);
      const seen = await shop.session(asked.session);
      return [status, seen['status'], seen['failure']?.message ?? ''];
    };

    it('N140 N141 decides at once, and a suspended credential can be reinstated', async () => {
      const held = await shop.issue('card-status');
      expect((await attempt(held)).slice(0, 2)).to.deep.equal([200, 'completed']);
      await change(held, 2);
      expect(await attempt(held)).to.satisfy(refusedFor('status_suspended'));
      await change(held, 0);
      expect((await attempt(held)).slice(0, 2)).to.deep.equal([200, 'completed']);
      await change(held, 1);
      expect(await attempt(held)).to.satisfy(refusedFor('status_revoked'));
    });

    it('is its own: others of the same list stay valid', async () => {
      const [one, other] = [await shop.issue('card-status'), await shop.issue('card-status')];
      const uri = (held: Held) => decode(held.text).payload['status'].status_list.uri;
      expect(uri(one)).to.equal(uri(other));
      await change(one, 1);
      expect(await attempt(one)).to.satisfy(refusedFor('status_revoked'));
      expect((await attempt(other)).slice(0, 2)).to.deep.equal([200, 'completed']);
    });

    it('cannot be changed by another tenant, nor where there is none', async () => {
      const held = await shop.issue('card-status');
      const foreign = await shop.call('POST', '/session/revoke', { sessionId: held.session, status: 1 });
      expect([foreign.status, foreign.body.code]).to.deep.equal([404, 'not_found']);
      expect((await attempt(held))[0]).to.equal(200);
      const plain = { sessionId: (await shop.issue('card')).session, status: 1 };
      expect((await shop.call('POST', '/session/revoke', plain, shop.acme.token)).status).to.equal(409);
    });
  });

  describe('issued by another service', () => {
    let issuer: TestService;
    let verifier: TestService;
    let guarded: TestService;
    let acme: { id: string; token: string };
    let held: Held;
    const tokens = new Map<TestService, string>();

    before(async () => {
      [issuer, verifier, guarded] = await Promise.all([
        startTestService(),
        startTestService({ OUTBOUND_ALLOW: 'localhost' }),
        startTestService({ OUTBOUND_ALLOW: '' }),
      ]);
      acme = await createTenant(issuer, 'acme');
      await issuer.call('POST', '/issuer/config', {
        token: acme.token,
        json: { display: [{ name: 'Acme', locale: 'en' }] },
      });
      const card = {
        id: 'card',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
        claims: { name: 'Ada' },
        disclosureFrame: { _sd: ['name'] },
        statusManagement: true,
      };
      await issuer.call('POST', '/issuer/credentials', { token: acme.token, json: card });
      held = await issue(issuer, acme, 'card');
      const chain = await issuer.call('GET', '/key-chain/signing', { token: acme.token });
      const trustAnchors = [{ certificate: chain.body.rootCertificate }];
      for (const service of [verifier, guarded]) {
        const { token } = await createTenant(service, 'shop');
        tokens.set(service, token);
        const json = { id: 'check', dcql_query: QUERY, trustAnchors };
        const written = await service.call('POST', '/verifier/config', { token, json });
        expect(written.status, written.text).to.equal(201);
      }
    });
    after(async () => {
      await Promise.all([verifier.close(), guarded.close()]);
    });

    const attempt = async (service: TestService) => {
      const token = tokens.get(service) ?? '';
      const asked = await ask(service, token, 'check');
      const { status } = await present(service, asked, held);
      const seen = (await service.call('GET', `/session/${asked.session}`, { token })).body;
      return [status, seen.status, seen.failure?.message ?? ''];
    };

    it('is fetched from there, and believed under the anchor of the credential', async () => {
      const [status, ended, message] = await attempt(verifier);
      expect([status, ended], String(message)).to.deep.equal([200, 'completed']);
    });

    it('N147 is not fetched from an address that may not be called', async () => {
      expect(await attempt(guarded)).to.satisfy(refusedFor('status_unavailable'));
    });

    it('N145 refuses while it cannot be fetched', async () => {
      await issuer.close();
      const late = await startTestService({ OUTBOUND_ALLOW: 'localhost' });
      try {
        const { token } = await createTenant(late, 'shop');
        tokens.set(late, token);
        const { body } = await verifier.call('GET', '/verifier/config/check', {
          token: tokens.get(verifier) ?? '',
        });
        const json = { id: 'check', dcql_query: QUERY, trustAnchors: body.trustAnchors };
        await late.call('POST', '/verifier/config', { token, json });
        expect(await attempt(late)).to.satisfy(refusedFor('status_unavailable'));
      } finally {
        await late.close();
      }
      expect((await attempt(verifier))[0], 'who has a copy uses it for its ttl').to.equal(200);
    });
  });
});

/** The answer to the wallet, the session's status and the reason for the operator. */
function refusedFor(reason: string): (result: unknown[]) => boolean {
  return ([status, ended, message]) => {
    expect([status, ended]).to.deep.equal([400, 'failed']);
    expect(message).to.include(reason);
    return true;
  };
}
