import { expect } from 'chai';
import sinon from 'sinon';
import { Kms } from '../../application/ports/kms.ts';
import { Store } from '../../application/ports/store.ts';
import { MAX_ISSUANCES } from '../../domain/sessions/session.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { Backend } from '../support/backend.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { decode } from '../support/present.ts';
import { CLIENT_ID, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CAPACITY = 120;
const BATCH = 10;
const REPEATS = 15;

/** A wallet with an access token for an offer. */
type Holder = { readonly wallet: RawWallet; readonly token: string; readonly session: string };

describe('rejected issuance', () => {
  let service: TestService;
  let backend: Backend;
  let tenants = 0;
  let tenant: { id: string; token: string };

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
  });
  after(async () => {
    await service.close();
    await backend.close();
  });
  beforeEach(async () => {
    backend.clearCalls();
    backend.on('/claims', { json: { hooked: { name: 'Ada' } } });
    const shape = { statusListConfig: { capacity: CAPACITY } };
    tenant = await createTenant(service, `acme-${++tenants}`, shape);
    await call('/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], batchSize: BATCH });
    const base = { config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] }, vct: 'urn:card:1', statusManagement: true };
    await call('/issuer/credentials', { ...base, id: 'inline', claims: { name: 'Ada' } });
    await call('/issuer/credentials', { ...base, id: 'hooked', claimsWebhook: { url: `${backend.url}/claims` } });
  });
  afterEach(() => sinon.restore());

  const call = async (path: string, json: object): Promise<Answer> => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.be.within(200, 201);
    return answer;
  };
  const offered = async (id: string): Promise<Holder> => {
    const { uri, session } = (
      await call('/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] })
    ).body;
    const wallet = new RawWallet(service, tenant.id);
    return { wallet, token: await wallet.accessToken(uri), session };
  };
  const bodyOf = async ({ wallet }: Holder, id: string, count = BATCH) => {
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: count }, () => keyProof(newKey(), wallet.issuer, nonce));
    return { credential_configuration_id: id, proofs: { jwt } };
  };
  const ask = async (holder: Holder, id: string, count = BATCH) =>
    holder.wallet.request(holder.token, id, { body: await bodyOf(holder, id, count) });
  const placesIn = ({ body }: Answer): { uri: string; idx: number }[] =>
    body.credentials.map(({ credential }: { credential: string }) => decode(credential).payload['status'].status_list);

  /** Whether other wallets get all that the list has left after `used` entries, each its own. */
  async function expectRoom(first: Answer, used: number): Promise<void> {
    const [{ uri } = { uri: '' }, ...others] = placesIn(first);
    expect(others.length).to.equal(first.body.credentials.length - 1);
    const places: { uri: string; idx: number }[] = [];
    for (let left = CAPACITY - used; left > 0; left -= BATCH) {
      const answer = await ask(await offered('inline'), 'inline');
      expect(answer.status, answer.text).to.equal(200);
      places.push(...placesIn(answer));
    }
    expect(places.filter((place) => place.uri !== uri).length, 'entries of another list').to.equal(0);
    const all = [...placesIn(first), ...places].map(({ idx }) => idx);
    expect(new Set(all).size, 'entries given twice').to.equal(all.length);
  }

  for (const id of ['inline', 'hooked']) {
    it(`allocates no status list entry when its nonce was used (${id})`, async () => {
      const holder = await offered(id);
      const body = await bodyOf(holder, id);
      const first = await holder.wallet.request(holder.token, id, { body });
      expect(first.status, first.text).to.equal(200);
      const sign = sinon.spy(service.service.container.get(Kms), 'sign');
      for (let repeat = 0; repeat < REPEATS; repeat++) {
        const answer = await holder.wallet.request(holder.token, id, { body });
        expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_nonce']);
      }
      expect(sign.callCount, 'signatures for nothing').to.be.at.most(BATCH);
      await expectRoom(first, BATCH);
    });

    it(`allocates no status list entry for concurrent requests with a used nonce (${id})`, async () => {
      const holder = await offered(id);
      const body = await bodyOf(holder, id);
      const first = await holder.wallet.request(holder.token, id, { body });
      const answers = await Promise.all(Array.from({ length: 15 }, () => holder.wallet.request(holder.token, id, { body })));
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 400));
      await expectRoom(first, BATCH);
    });

    it(`allocates no status list entry once its session was revoked (${id})`, async () => {
      const holder = await offered(id);
      const first = await ask(holder, id);
      await call('/session/revoke', { sessionId: holder.session, status: 1 });
      const sign = sinon.spy(service.service.container.get(Kms), 'sign');
      const asked = backend.calls.length;
      for (let repeat = 0; repeat < REPEATS; repeat++) {
        const answer = await ask(holder, id);
        expect([answer.status, answer.body.error]).to.deep.equal([400, 'credential_request_denied']);
      }
      expect(sign.callCount, 'signatures for nothing').to.be.at.most(BATCH);
      expect(backend.calls.length, 'the backend is not asked').to.equal(asked);
      await expectRoom(first, BATCH);
    });

    it(`allocates no status list entry beyond the issuance limit of its session (${id})`, async () => {
      const holder = await offered(id);
      const first = await ask(holder, id, 1);
      for (let issued = 1; issued < MAX_ISSUANCES; issued++) {
        expect((await ask(holder, id, 1)).status).to.equal(200);
      }
      const sign = sinon.spy(service.service.container.get(Kms), 'sign');
      const asked = backend.calls.length;
      for (let repeat = 0; repeat < REPEATS; repeat++) {
        const answer = await ask(holder, id);
        expect([answer.status, answer.body.error]).to.deep.equal([400, 'credential_request_denied']);
      }
      expect(sign.callCount, 'signatures for nothing').to.be.at.most(BATCH);
      expect(backend.calls.length, 'the backend is not asked').to.equal(asked);
      await expectRoom(first, MAX_ISSUANCES);
    });
  }

  it('calls no backend for a deferred credential that could not be issued', async () => {
    backend.on('/claims', { json: { deferred: true } });
    const holder = await offered('hooked');
    for (let deferred = 0; deferred < MAX_ISSUANCES; deferred++) {
      expect((await ask(holder, 'hooked', 1)).status).to.equal(202);
    }
    const answer = await ask(holder, 'hooked', 1);
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'credential_request_denied']);
    expect(backend.calls).to.have.length(MAX_ISSUANCES);
    // The limit on promises is none on credentials that need no backend.
    expect((await ask(await offered('inline'), 'inline')).status).to.equal(200);
  });
});

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};

describe('error record of a wallet that is rejected during the issuance', () => {
  let service: TestService;
  let token: string;
  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createResource(service, token, '/issuer/credentials', CARD);
    await createResource(service, token, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
  });
  after(() => service.close());

  async function collecting() {
    const { uri, session } = await createResource(service, token, '/issuer/offer', offerBody('card'));
    const wallet = new RawWallet(service, 'acme');
    const accessToken = (await wallet.redeem(await wallet.code(uri))).body.access_token as string;
    const shown = async () => (await service.call('GET', `/session/${session}`, { token })).body;
    return { wallet, accessToken, shown };
  }
  const wrong = () => ({ credential_configuration_id: 'card', proofs: { jwt: [keyProof(newKey(), 'https://elsewhere.example', 'x')] } });

  it('contains the error, its reason, time and log id, and does not prevent the credential', async () => {
    const { wallet, accessToken, shown } = await collecting();
    expect((await shown()).attempts).to.equal(undefined);
    const refused = await wallet.request(accessToken, 'card', { body: wrong() });
    expect([refused.status, refused.body.error]).to.deep.equal([400, 'invalid_proof']);
    const [attempt, ...more] = (await shown()).attempts;
    expect(more).to.deep.equal([]);
    expect(attempt).to.deep.include({
      code: 'invalid_proof',
      reason: 'aud is not the credential issuer identifier',
      requestId: refused.headers.get('x-request-id'),
    });
    expect(Date.parse(attempt.at)).to.be.closeTo(Date.now(), 5_000);
    const good = await wallet.request(accessToken, 'card');
    expect(good.status, good.text).to.equal(200);
    const after = await shown();
    expect([after.status, after.attempts.length]).to.deep.equal(['completed', 1]);
  });

  it('contains at most twenty attempts, and none of a normal flow', async () => {
    const { wallet, accessToken, shown } = await collecting();
    for (let i = 0; i < 22; i++) await wallet.request(accessToken, 'card', { body: wrong() });
    expect((await shown()).attempts).to.have.length(20);
    const { updatedAt } = await shown();
    await wallet.request(accessToken, 'card', { body: wrong() });
    expect((await shown()).updatedAt).to.equal(updatedAt);
  });

  describe('at the token endpoint with a valid code', () => {
    const offered = async (more: object = {}) => {
      const body = { ...offerBody('card'), ...more };
      const { uri, session } = await createResource(service, token, '/issuer/offer', body);
      const wallet = new RawWallet(service, 'acme');
      const attempts = async () => (await service.call('GET', `/session/${session}`, { token })).body.attempts;
      return { wallet, uri, attempts };
    };

    it('contains a wrong transaction code, and the wallet gets its token afterwards', async () => {
      const { wallet, uri, attempts } = await offered({ tx_code: '4711' });
      const code = await wallet.code(uri);
      for (const tx_code of ['0000', '']) {
        const refused = await wallet.redeem(code, tx_code === '' ? {} : { tx_code });
        expect(refused.status).to.equal(400);
      }
      const [first, second, ...more] = await attempts();
      expect([first.code, first.reason, more.length]).to.deep.equal(['invalid_grant', 'the tx_code is wrong', 0]);
      expect(first.requestId).to.be.a('string');
      expect(second.code).to.be.oneOf(['invalid_request', 'invalid_grant']);
      expect((await wallet.redeem(code, { tx_code: '4711' })).status).to.equal(200);
      expect(await attempts()).to.have.length(2);
    });

    it('contains a missing DPoP proof, and not a used or unknown code', async () => {
      const { wallet, uri, attempts } = await offered();
      const code = await wallet.code(uri);
      expect((await wallet.redeem('unknown')).status).to.equal(400);
      expect((await wallet.redeem(code, {}, {})).status).to.equal(400);
      expect((await attempts()).map(({ code: name }: { code: string }) => name)).to.deep.equal(['invalid_dpop_proof']);
      expect((await wallet.redeem(code)).status).to.equal(200);
      expect((await new RawWallet(service, 'acme').redeem(code)).status).to.equal(400);
      expect(await attempts()).to.have.length(1);
    });

    it('contains a wrong code verifier and a refresh without a proof', async () => {
      const { wallet, uri, attempts } = await offered({ flow: 'authorization_code' });
      const code = await wallet.authorize(await wallet.push(uri, 'card'));
      expect((await wallet.redeemCode(code, { code_verifier: 'x'.repeat(43) })).status).to.equal(400);
      const { body } = await wallet.redeemCode(code);
      expect((await wallet.refresh(body.refresh_token, { client_id: CLIENT_ID }, {})).status).to.equal(400);
      expect((await attempts()).map(({ code: name }: { code: string }) => name)).to.deep.equal([
        ...['invalid_grant', 'invalid_dpop_proof'],
      ]);
    });

    it('contains a missing wallet attestation, and no normal step', async () => {
      await createResource(service, token, '/issuer/config', {
        ...{ display: [{ name: 'Acme', locale: 'en' }], walletAttestationRequired: true, dPopNonce: 'required' },
        walletClients: [{ client_id: 'https://other.example', jwks: { keys: [newKey().jwk] } }],
      });
      const { wallet, uri, attempts } = await offered();
      const code = await wallet.code(uri);
      expect((await wallet.redeem(code)).body.error).to.equal('invalid_client');
      await createResource(service, token, '/issuer/config', { ...{ display: [{ name: 'Acme', locale: 'en' }], dPopNonce: 'required' } });
      expect((await wallet.redeem(code)).body.error).to.equal('use_dpop_nonce');
      await createResource(service, token, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      expect((await attempts()).map(({ code: name }: { code: string }) => name)).to.deep.equal(['invalid_client']);
    });
  });

  it('contains nothing without a valid token', async () => {
    const { wallet, accessToken, shown } = await collecting();
    const forged = `${accessToken.slice(0, -4)}AAAA`;
    expect((await wallet.request(forged, 'card')).status).to.equal(401);
    expect((await shown()).attempts).to.equal(undefined);
  });

  it('contains the use of a revoked token', async () => {
    const { wallet, accessToken, shown } = await collecting();
    const { grant_id: id } = decode(accessToken).payload as { grant_id: string };
    const store = service.service.container.get(Store);
    await store.commit('acme' as TenantId, { grant: { id, act: 'revoke' } }, new Date());
    expect((await wallet.request(accessToken, 'card')).status).to.equal(401);
    expect((await shown()).attempts[0]).to.deep.include({ code: 'invalid_token' });
  });
});
