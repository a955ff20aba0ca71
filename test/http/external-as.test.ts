import { expect } from 'chai';
import sinon from 'sinon';
import { parsePublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { Backend } from '../support/backend.ts';
import { payloadOf } from '../support/chained-world.ts';
import { httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import { MisbehavingProvider } from '../support/misbehaving-provider.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { dpopProof, type HolderKey, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { type MintedToken, startUpstreamProvider, type UpstreamProvider } from '../support/upstream-provider.ts';

const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };

for (const { name, open } of httpDatabases()) {
  describe(`access tokens of an external authorization server, on ${name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let provider: UpstreamProvider;
    let backend: Backend;
    let token: string;
    let wallet: RawWallet;

    const configure = async (overrides: object = {}, tenantToken = token) => {
      const json = { display: [{ name: 'Acme', locale: 'en' }], authServers: [provider.issuer], ...overrides };
      const answer = await service.call('POST', '/issuer/config', { token: tenantToken, json });
      expect(answer.status, answer.text).to.equal(201);
    };

    before(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      backend = await Backend.start();
      backend.on('/claims', (response, { body }) =>
        response.end(
          JSON.stringify({ badge: { department: body.identity.token_claims.department }, member: { number: body.identity.sub } }),
        ),
      );
      provider = await startUpstreamProvider({
        accounts: { alice: {}, bob: {}, carol: {}, dora: {}, emil: {}, fred: {}, gina: {} },
        resourceScopes: ['badge', 'card', 'web', 'member'],
        algorithm: 'ES256',
      });
      ({ token } = await createTenant(service, 'acme'));
      const webhook = { url: `${backend.url}/claims` };
      const badge = { id: 'badge', config, vct: 'urn:badge:1', claimsWebhook: webhook };
      const card = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };
      const web = { ...card, id: 'web', iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example/' }] };
      const memberConfiguration = {
        ...{ id: 'member', config, vct: 'urn:member:1', claimsWebhook: webhook },
        ...{ statusManagement: true, subjectClaims: [['number']] },
      };
      for (const body of [badge, card, web, memberConfiguration]) await createResource(service, token, '/issuer/credentials', body);
      await configure();
      wallet = new RawWallet(service, 'acme');
    });
    after(async () => {
      await service?.close();
      await provider?.close();
      await backend?.close();
      await database?.drop();
    });
    beforeEach(() => backend.clearCalls());

    const thumbprintOf = ({ jwk }: HolderKey) => {
      const key = parsePublicJwk(jwk);
      if (key === undefined) throw new Error('no key');
      return thumbprint(key);
    };
    /** A token that is bound to the key of the wallet by default. */
    const tokenFor = (changes: MintedToken = {}, audience = wallet.issuer) =>
      provider.accessTokenFor(audience, { scope: 'card', keyThumbprint: thumbprintOf(wallet.dpopKey), ...changes });
    const offer = async (credential: string, overrides: object = {}) => {
      const body = { ...offerBody(credential), flow: 'authorization_code', ...overrides };
      const { uri, session } = await createResource(service, token, '/issuer/offer', body);
      const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code?: { issuer_state: string } } };
      return { session: session as string, issuer_state: grants.authorization_code?.issuer_state ?? '', uri };
    };
    const sessions = async () => {
      const answer = await service.call('GET', '/session', { token });
      return answer.body as { id: string; externalSubject?: string; configurationIds: string[] }[];
    };
    const session = async (id: string) => (await service.call('GET', `/session/${id}`, { token })).body;
    const sessionsOf = async (subject: string) => (await sessions()).filter(({ externalSubject }) => externalSubject === subject);
    const expectIssued = (answer: Answer) => {
      expect(answer.status, answer.text).to.equal(200);
      return payloadOf(answer.body.credentials[0].credential);
    };
    const expectError = (answer: Answer, status: number, error: string) =>
      expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);

    it('get the credential of the offer and the subject that they name', async () => {
      const { session: id, issuer_state } = await offer('badge');
      const text = await tokenFor({ scope: 'badge', claims: { issuer_state, department: 'R&D' } });
      expect(expectIssued(await wallet.request(text, 'badge'))).to.include({ department: 'R&D' });
      const [call] = backend.callsTo('/claims');
      expect(call?.body.session).to.equal(id);
      expect(call?.body.identity).to.deep.equal({ iss: provider.issuer, sub: 'alice', token_claims: payloadOf(text) });
      expect(await session(id)).to.include({ status: 'completed', externalIssuer: provider.issuer, externalSubject: 'alice' });
    });

    it('get a credential without an offer, in one session per user', async () => {
      expectIssued(await wallet.request(await tokenFor({ accountId: 'bob' }), 'card'));
      expectIssued(await wallet.request(await tokenFor({ accountId: 'bob' }), 'card'));
      expectIssued(await wallet.request(await tokenFor({ accountId: 'carol' }), 'card'));
      const [ownSession, ...otherSessions] = await sessionsOf('bob');
      expect(otherSessions).to.deep.equal([]);
      expect(ownSession?.configurationIds).to.deep.equal(['card']);
      expect(await sessionsOf('carol')).to.have.length(1);
      expect(await session(ownSession?.id ?? '')).to.include({
        status: 'completed',
        externalIssuer: provider.issuer,
        externalSubject: 'bob',
      });
      // A configuration that the session does not contain needs another session.
      expectIssued(await wallet.request(await tokenFor({ accountId: 'bob', scope: 'card badge' }), 'badge'));
      expect(await sessionsOf('bob')).to.have.length(2);
    });

    it('lead a user back to the session of the same offer', async () => {
      const { session: id, issuer_state } = await offer('card');
      const first = await tokenFor({ accountId: 'dora', claims: { issuer_state } });
      expectIssued(await wallet.request(first, 'card'));
      expectIssued(await wallet.request(await tokenFor({ accountId: 'dora' }), 'card'));
      expect((await sessionsOf('dora')).map((entry) => entry.id)).to.deep.equal([id]);
    });

    it('create one session for concurrent requests', async () => {
      const text = await tokenFor({ accountId: 'emil' });
      const nonces = await Promise.all(Array.from({ length: 8 }, () => wallet.nonce()));
      const responses = await Promise.all(nonces.map((nonce) => wallet.request(text, 'card', { nonce })));
      for (const answer of responses) expectIssued(answer);
      expect(await sessionsOf('emil')).to.have.length(1);
    });

    it('leave no readable user in the database', async () => {
      expectIssued(await wallet.request(await tokenFor({ accountId: 'helena' }), 'card'));
      expect(await sessionsOf('helena')).to.have.length(1);
      const rows = await rawSql(database?.url ?? '', async (run) => {
        const tables = ['sessions', 'session_subjects', 'session_events'];
        return Promise.all(tables.map((table) => run(`select * from ${table}`)));
      });
      const text = JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? String(value) : value));
      expect(text).to.include('subject_hash').and.not.include('helena');
      expect(text).to.not.include(provider.issuer);
    });

    it('are rejected after a revocation of their subject, and accepted for other users', async () => {
      const { issuer_state } = await offer('member');
      const tokenOf = (accountId: string) => tokenFor({ scope: 'member', accountId, claims: { issuer_state } });
      const [tokenOfAlice, tokenOfGina, tokenOfBob] = [await tokenOf('alice'), await tokenOf('gina'), await tokenOf('bob')];
      for (const text of [tokenOfAlice, tokenOfBob]) expectIssued(await wallet.request(text, 'member'));
      // Gina has a token, but no credential yet.
      for (const [number, revoked] of [['alice', 1] as const, ['gina', 0] as const]) {
        const json = { claims: { number } };
        const answer = await service.call('POST', '/credentials/revoke-by-subject', { token, json });
        expect(answer.body, answer.text).to.deep.equal({ revoked, pending: 0 });
      }
      for (const text of [tokenOfAlice, tokenOfGina]) expectError(await wallet.request(text, 'member'), 401, 'invalid_token');
      expect(expectIssued(await wallet.request(tokenOfBob, 'member'))).to.include({ number: 'bob' });
    });

    it('are accepted for notifications, too', async () => {
      const text = await tokenFor({ accountId: 'fred' });
      const answer = await wallet.request(text, 'card');
      const json = { notification_id: answer.body.notification_id, event: 'credential_accepted' };
      const url = `${wallet.issuer}/notification`;
      const headers = { Authorization: `DPoP ${text}`, DPoP: dpopProof(wallet.dpopKey, url, { token: text }) };
      const notification = await service.call('POST', '/acme/notification', { json, headers });
      expect(notification.status, notification.text).to.equal(204);
    });

    it('select credentials by identifiers of their server', async () => {
      const detail = { type: 'openid_credential', credential_configuration_id: 'card' };
      const text = await tokenFor({ accountId: 'gina', authorizationDetails: [{ ...detail, credential_identifiers: ['card of Gina'] }] });
      const request = async (identifier: object) => {
        const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
        return wallet.request(text, 'card', { body: { ...identifier, proofs } });
      };
      expect(expectIssued(await request({ credential_identifier: 'card of Gina' })).vct).to.equal('urn:card:1');
      for (const unknownIdentifier of ['card', 'card of Bob', 'constructor', '']) {
        expectError(await request({ credential_identifier: unknownIdentifier }), 400, 'unknown_credential_identifier');
      }
      const both = { credential_identifier: 'card of Gina', credential_configuration_id: 'card' };
      expectError(await request(both), 400, 'invalid_credential_request');
      expect(expectIssued(await request({ credential_configuration_id: 'card' })).vct).to.equal('urn:card:1');
    });

    it('cover the credentials that they name, except those that require an interaction first', async () => {
      const text = await tokenFor({ accountId: 'bob', scope: 'card web' });
      expectIssued(await wallet.request(text, 'card'));
      expectError(await wallet.request(text, 'badge'), 403, 'insufficient_scope');
      expectError(await wallet.request(text, 'web'), 403, 'insufficient_scope');
      const before = (await sessions()).length;
      for (const scope of ['web', 'openid', '']) {
        const tokenWithoutScope = await tokenFor({ accountId: 'unknown', scope });
        expectError(await wallet.request(tokenWithoutScope, 'web'), 403, 'insufficient_scope');
      }
      expect((await sessions()).length).to.equal(before);
    });

    describe('are rejected', () => {
      let before: number;
      beforeEach(async () => {
        before = (await sessions()).length;
      });
      afterEach(async () => {
        expect((await sessions()).length, 'no session was created').to.equal(before);
      });
      const expectInvalid = (answer: Answer) => {
        expectError(answer, 401, 'invalid_token');
        expect(answer.headers.get('www-authenticate')).to.match(/^DPoP error="invalid_token"/);
      };
      const otherAccount = { accountId: 'other' };

      it('for another issuer', async () => {
        expectInvalid(await wallet.request(await tokenFor(otherAccount, `${service.address}/other`), 'card'));
        expectInvalid(await wallet.request(await tokenFor(otherAccount, `${wallet.issuer}/`), 'card'));
      });

      it('after their expiry', async () => {
        const text = await tokenFor({ ...otherAccount, lifetimeSeconds: 30 });
        const clock = sinon.useFakeTimers({ now: Date.now() + 91_000, toFake: ['Date'] });
        try {
          expectInvalid(await wallet.request(text, 'card'));
        } finally {
          clock.restore();
        }
      });

      it('after a modification', async () => {
        const [header, payload = '', signature] = (await tokenFor(otherAccount)).split('.');
        const claims = { ...payloadOf(`.${payload}.`), sub: 'alice' };
        const otherPayload = Buffer.from(JSON.stringify(claims)).toString('base64url');
        expectInvalid(await wallet.request(`${header}.${otherPayload}.${signature}`, 'card'));
        const headerWithoutAlg = Buffer.from('{"alg":"none"}').toString('base64url');
        expectInvalid(await wallet.request(`${headerWithoutAlg}.${payload}.`, 'card'));
      });

      it('from a server that the tenant does not name, without a call to it', async () => {
        const otherProvider = await MisbehavingProvider.start();
        const claims = { aud: wallet.issuer, sub: 'alice', scope: 'card', nonce: undefined };
        const text = otherProvider.token({ claims: { ...claims, cnf: { jkt: thumbprintOf(wallet.dpopKey) } } });
        expectInvalid(await wallet.request(text, 'card'));
        expect(otherProvider.requests).to.deep.equal([]);
        await otherProvider.close();
      });

      it('signed by another server', async () => {
        const otherProvider = await MisbehavingProvider.start();
        const claims = { iss: provider.issuer, aud: wallet.issuer, scope: 'card', nonce: undefined };
        expectInvalid(await wallet.request(otherProvider.token({ claims }), 'card'));
        expect(otherProvider.requests).to.deep.equal([]);
        await otherProvider.close();
      });

      it('at a tenant that does not name their server', async () => {
        const { token: otherTenantToken } = await createTenant(service, 'without');
        const card = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };
        await createResource(service, otherTenantToken, '/issuer/credentials', card);
        const otherWallet = new RawWallet(service, 'without');
        const keyThumbprint = thumbprintOf(otherWallet.dpopKey);
        const text = await tokenFor({ ...otherAccount, keyThumbprint }, otherWallet.issuer);
        expectInvalid(await otherWallet.request(text, 'card'));
        await configure({}, otherTenantToken);
        expectIssued(await otherWallet.request(text, 'card'));
        await configure({ authServers: [] }, otherTenantToken);
        expectInvalid(await otherWallet.request(text, 'card'));
      });

      it('without key binding, with another key, or sent as bearer tokens', async () => {
        const bearerToken = await provider.accessTokenFor(wallet.issuer, { ...otherAccount, scope: 'card' });
        expectInvalid(await wallet.request(bearerToken, 'card', { headers: { Authorization: `Bearer ${bearerToken}` } }));
        expectInvalid(await wallet.request(bearerToken, 'card'));
        const text = await tokenFor(otherAccount);
        expectInvalid(await wallet.request(text, 'card', { headers: { Authorization: `Bearer ${text}` } }));
        const headersOfOtherKey = wallet.authorization(text, { key: newKey() });
        expectInvalid(await wallet.request(text, 'card', { headers: headersOfOtherKey }));
        const { Authorization = '' } = wallet.authorization(text);
        const responseWithoutProof = await wallet.request(text, 'card', { headers: { Authorization } });
        expectError(responseWithoutProof, 401, 'invalid_dpop_proof');
        const headersOfOtherToken = wallet.authorization(text, { payload: { ath: 'x'.repeat(43) } });
        expectError(await wallet.request(text, 'card', { headers: headersOfOtherToken }), 401, 'invalid_dpop_proof');
      });

      it('with an unsupported key binding', async () => {
        const claims = { cnf: { 'x5t#S256': 'x'.repeat(43) } };
        const bearerToken = await provider.accessTokenFor(wallet.issuer, { ...otherAccount, scope: 'card', claims });
        expectInvalid(await wallet.request(bearerToken, 'card', { headers: { Authorization: `Bearer ${bearerToken}` } }));
      });

      it('for a missing or unsuitable offer, or an offer of another server', async () => {
        const preAuthorized = await createResource(service, token, '/issuer/offer', offerBody('card'));
        const publicId = new URL(new URL(preAuthorized.uri).searchParams.get('credential_offer_uri') ?? '').pathname.split('/').at(-1);
        const offerOfBuiltIn = await offer('card', { authorization_server: wallet.issuer });
        before += 2;
        for (const issuer_state of ['unknown', 'nul\0', '', publicId, offerOfBuiltIn.issuer_state]) {
          const text = await tokenFor({ ...otherAccount, claims: { issuer_state } });
          expectInvalid(await wallet.request(text, 'card'));
        }
        expect(await sessionsOf('other')).to.deep.equal([]);
      });
    });

    it('are rejected if they are ID tokens', async () => {
      const otherProvider = await MisbehavingProvider.start();
      try {
        await configure({ authServers: [otherProvider.issuer], dPopRequired: false });
        const claims = { aud: wallet.issuer, sub: 'alice', scope: 'card' };
        const request = (text: string) => wallet.request(text, 'card', { headers: { Authorization: `Bearer ${text}` } });
        expectError(await request(otherProvider.token({ claims: { ...claims, nonce: 'n-1' } })), 401, 'invalid_token');
        expectIssued(await request(otherProvider.token({ claims: { ...claims, nonce: undefined } })));
      } finally {
        await configure();
        await otherProvider.close();
      }
    });

    it('may be bearer tokens if the tenant allows it', async () => {
      await configure({ dPopRequired: false });
      const bearerToken = await provider.accessTokenFor(wallet.issuer, { accountId: 'bob', scope: 'card' });
      expectIssued(await wallet.request(bearerToken, 'card', { headers: { Authorization: `Bearer ${bearerToken}` } }));
      // A bound token stays bound.
      const text = await tokenFor({ accountId: 'bob' });
      const answer = await wallet.request(text, 'card', { headers: { Authorization: `Bearer ${text}` } });
      expectError(answer, 401, 'invalid_token');
      await configure();
    });

    it('are rejected for a finished or unrelated offer', async () => {
      const { session: id, issuer_state } = await offer('card', { expiresIn: 30 });
      const text = await tokenFor({ accountId: 'alice', claims: { issuer_state } });
      const clock = sinon.useFakeTimers({ now: Date.now() + 31_000, toFake: ['Date'] });
      try {
        expectError(await wallet.request(text, 'card'), 400, 'credential_request_denied');
      } finally {
        clock.restore();
      }
      expect((await session(id)).externalSubject).to.equal(undefined);
      const otherOffer = await offer('card');
      const badge = await tokenFor({ scope: 'badge card', claims: { issuer_state: otherOffer.issuer_state } });
      expectError(await wallet.request(badge, 'badge'), 403, 'insufficient_scope');
      expectIssued(await wallet.request(badge, 'card'));
    });

    it('are rejected with a repeated proof', async () => {
      const text = await tokenFor({ accountId: 'bob' });
      const headers = wallet.authorization(text);
      expectIssued(await wallet.request(text, 'card', { headers }));
      expectError(await wallet.request(text, 'card', { headers }), 401, 'invalid_dpop_proof');
    });

    it('can be retried when the keys of their server are unavailable', async () => {
      const stoppedProvider = await MisbehavingProvider.start();
      const claims = { aud: wallet.issuer, scope: 'card', nonce: undefined };
      const text = stoppedProvider.token({ claims: { ...claims, cnf: { jkt: thumbprintOf(wallet.dpopKey) } } });
      await stoppedProvider.close();
      await configure({ authServers: [stoppedProvider.issuer] });
      const answer = await wallet.request(text, 'card');
      expectError(answer, 503, 'temporarily_unavailable');
      expect(answer.headers.get('retry-after')).to.equal('15');
      await configure();
    });
  });
}
