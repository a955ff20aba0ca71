import { expect } from 'chai';
import sinon from 'sinon';
import { Kms } from '../../application/ports/kms.ts';
import { MAX_ISSUANCES } from '../../domain/sessions/session.ts';
import { Backend } from '../support/backend.ts';
import { decode } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CAPACITY = 200;
const BATCH = 10;
const REPEATS = 60;

/** A wallet with an access token for an offer. */
type Holder = { readonly wallet: RawWallet; readonly token: string; readonly session: string };

describe('an issuance that is refused', () => {
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
    backend.forget();
    backend.on('/claims', { json: { hooked: { name: 'Ada' } } });
    const shape = { statusListConfig: { capacity: CAPACITY } };
    tenant = await createTenant(service, `acme-${++tenants}`, shape);
    await call('/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], batchSize: BATCH });
    const base = {
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      statusManagement: true,
    };
    await call('/issuer/credentials', { ...base, id: 'inline', claims: { name: 'Ada' } });
    await call('/issuer/credentials', {
      ...base,
      id: 'hooked',
      claimsWebhook: { url: `${backend.url}/claims` },
    });
  });
  afterEach(() => sinon.restore());

  const call = async (path: string, json: object): Promise<Answer> => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.be.within(200, 201);
    return answer;
  };
  const offered = async (id: string): Promise<Holder> => {
    const { uri, session } = (
      await call('/issuer/offer', {
        response_type: 'uri',
        flow: 'pre_authorized_code',
        credentialConfigurationIds: [id],
      })
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
    body.credentials.map(
      ({ credential }: { credential: string }) => decode(credential).payload['status'].status_list,
    );

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
    it(`takes nothing from the status list when its nonce was used (${id})`, async () => {
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

    it(`takes nothing from the status list at the same time either (${id})`, async () => {
      const holder = await offered(id);
      const body = await bodyOf(holder, id);
      const first = await holder.wallet.request(holder.token, id, { body });
      const answers = await Promise.all(
        Array.from({ length: 15 }, () => holder.wallet.request(holder.token, id, { body })),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 400));
      await expectRoom(first, BATCH);
    });

    it(`takes nothing from the status list once its session was revoked (${id})`, async () => {
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

    it(`takes nothing from the status list past the last issuance of its session (${id})`, async () => {
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

  it('asks no backend for a promise that nobody could keep', async () => {
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
