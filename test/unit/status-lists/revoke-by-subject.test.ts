import { expect } from 'chai';
import sinon from 'sinon';
import type { TenantCaller } from '../../../application/caller.ts';
import type { RevocationOrder } from '../../../application/ports/issued-subjects.ts';
import { MAX_BATCHES, SubjectRevocation } from '../../../application/status-lists/revoke-by-subject.ts';
import { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import type { Change } from '../../../domain/changes/change.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { SESSION_STATUSES } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import type { IssuedBatch } from '../../../domain/status-lists/status-list.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { AUTHORIZATION_REQUEST, makeJwt, newKey } from '../../support/raw-wallet.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const ADA = { number: '17', name: 'Ada' };
const BOB = { number: '18', name: 'Bob' };
const MDOC = { format: 'mso_mdoc', docType: 'org.example.badge', display: [{ name: 'Badge' }] };
const SHARED_CARD = {
  ...{ claims: null, claimsWebhook: { url: 'https://backend.example/claims' } },
  ...{ statusManagement: true, subjectClaims: [['number']] },
};
const BADGE_NUMBER = ['org.example.badge', 'number'];

describe('RevokeBySubject', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  beforeEach(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    const withSubjectClaims = { statusManagement: true, subjectClaims: [['number']] };
    for (const id of ['card', 'other']) await world.putCredential({ id, ...withSubjectClaims });
    await world.putCredential({ id: 'badge', config: MDOC, ...withSubjectClaims, subjectClaims: [BADGE_NUMBER] });
  });
  afterEach(() => sinon.restore());

  const inlineClaims = (ids: readonly string[], claims: object) => Object.fromEntries(ids.map((id) => [id, { type: 'inline', claims }]));
  const issueTo = async (claims: object, ids: readonly string[] = ['card']) => {
    const offer = await anOffer(world, { credentialConfigurationIds: ids, credentialClaims: inlineClaims(ids, claims) });
    const token = await wallet.token(offer);
    const issue = (id = ids[0] ?? '') => wallet.issue(token, { credential_configuration_id: id });
    return { session: offer.session.id, issue, issued: await issue() };
  };
  /** A shared offer whose claims come from a backend that knows the user. */
  const openSharedOffer = async (ids: readonly string[]) => {
    const { session } = await anOffer(world, { flow: 'authorization_code', credentialConfigurationIds: ids });
    const logIn = async (person: JsonObject) => {
      const personalWallet = new Wallet(world);
      const requestUri = await personalWallet.push({ issuer_state: session.publicId, scope: ids.join(' ') });
      const { body } = await personalWallet.redeemCode(await personalWallet.approve(requestUri));
      const client = { client_id: AUTHORIZATION_REQUEST.client_id };
      return {
        issue: (id = ids[0] ?? '') => {
          world.webhooks.answer = Object.fromEntries(ids.map((each) => [each, person]));
          return personalWallet.issue(body.access_token, { credential_configuration_id: id });
        },
        refresh: async () => {
          const request = personalWallet.createOAuthRequest('token', client);
          return personalWallet.refresh(body.refresh_token, { request });
        },
      };
    };
    return { session: session.id, logIn };
  };
  const statusOf = async (session: string): Promise<number[]> => {
    const issuedBatches = await world.store.read(ACME).issued(session as never);
    const lists = await (await world.caller()).tenant.statusLists();
    const statuses: number[] = [];
    for (const { statusListId, firstCounter, count } of issuedBatches?.batches ?? []) {
      const list = lists.find(({ id }) => id === statusListId);
      if (list === undefined || firstCounter === null) continue;
      const entries = await world.store.read(ACME).statusEntries(list.id, 0);
      for (const index of world.statusAllocator.indicesOf(ACME, list, firstCounter, count))
        statuses.push(entries.find((entry) => entry.index === index)?.status ?? 0);
    }
    return statuses;
  };
  const revoke = async (revocation: object, rights: Partial<TenantCaller> = {}, tenantId = ACME) => {
    const caller = { ...(await world.caller(tenantId)), ...rights };
    return world.revokeBySubject.execute(caller, SubjectRevocation.parse(revocation));
  };

  it('revokes the credentials of all sessions of the subject, and no others', async () => {
    const [adaSession, otherAdaSession, bobSession] = [
      await issueTo(ADA),
      await issueTo({ ...ADA, name: 'Ada L.' }, ['other']),
      await issueTo(BOB),
    ];
    expect(await revoke({ claims: { number: '17', name: 'whatever' } })).to.deep.equal({ revoked: 2, pending: 0 });
    expect([await statusOf(adaSession.session), await statusOf(otherAdaSession.session), await statusOf(bobSession.session)]).to.deep.equal(
      [[1], [1], [0]],
    );
    expect(await outcomeOf(adaSession.issue()), 'its wallet gets no further credential').to.equal('invalid_token');
    expect(await outcomeOf(bobSession.issue())).to.equal('done');
    expect(await revoke({ claims: ADA }), 'once').to.deep.equal({ revoked: 0, pending: 0 });
  });

  it('revokes entries of a list that another process created concurrently', async () => {
    const adaSession = await issueTo(ADA);
    const caller = await world.caller();
    const stub = sinon.stub(TenantConfiguration.prototype, 'statusLists').resolves([]);
    const result = await world.revokeBySubject.execute(caller, SubjectRevocation.parse({ claims: ADA }));
    stub.restore();
    expect(result).to.deep.equal({ revoked: 1, pending: 0 });
    expect(await statusOf(adaSession.session)).to.deep.equal([1]);
  });

  it('is final, also for previously suspended credentials (ARF VCR_04)', async () => {
    const adaSession = await issueTo(ADA);
    expect((await revoke({ claims: ADA })).revoked).to.equal(1);
    const restore = (status: 0 | 2) =>
      world.caller().then((caller) => world.revokeSession.execute(cachedCaller(caller), { sessionId: adaSession.session, status }));
    for (const status of [0, 2] as const) expect(await outcomeOf(restore(status))).to.be.oneOf(['conflict', 'invalid_input']);
    expect(await statusOf(adaSession.session)).to.deep.equal([1]);
  });

  it('distinguishes types and values', async () => {
    const adaSession = await issueTo(ADA);
    for (const number of ['170', '17 ', 17, '', 'Ada'])
      if (number === '') expect(await outcomeOf(revoke({ claims: { number } }))).to.equal('invalid_input');
      else expect((await revoke({ claims: { number } })).revoked, String(number)).to.equal(0);
    expect(await statusOf(adaSession.session)).to.deep.equal([0]);
  });

  it('finds an mdoc by its elements, with and without their namespace', async () => {
    for (const claims of [{ number: '17' }, { 'org.example.badge': { number: '17' } }]) {
      const adaSession = await issueTo(ADA, ['badge']);
      expect((await revoke({ claims })).revoked).to.equal(1);
      expect(await statusOf(adaSession.session)).to.deep.equal([1]);
      world.clock.time += 1000;
    }
  });

  for (const [format, id, ada, bob, paths] of [
    ['SD-JWT VC', 'shared-card', ADA, BOB, [['number']]],
    ['mdoc', 'shared-badge', { 'org.example.badge': ADA }, { 'org.example.badge': BOB }, [BADGE_NUMBER]],
  ] as const) {
    describe(`tokens of the subject for a shared offer of an ${format}`, () => {
      const claimsWebhook = { url: 'https://backend.example/claims' };
      const fromBackend = { claims: null, claimsWebhook, ...(format === 'mdoc' && { config: MDOC }) };
      beforeEach(async () => {
        await world.putCredential({ id, ...fromBackend, statusManagement: true, subjectClaims: paths });
        await world.putCredential({ id: 'plain', ...fromBackend });
      });
      const advanceSecond = async () => {
        world.clock.time += 1_000;
      };

      it('issue no other credential after the revocation, unlike those of another subject', async () => {
        const { session, logIn } = await openSharedOffer([id, 'plain']);
        const [adaIssuances, bobIssuances] = [await logIn(ada), await logIn(bob)];
        await adaIssuances.issue();
        await advanceSecond();
        await bobIssuances.issue();
        await advanceSecond();
        expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 1, pending: 0 });
        expect(await outcomeOf(adaIssuances.refresh())).to.equal('invalid_grant');
        for (const each of [id, 'plain']) expect(await outcomeOf(adaIssuances.issue(each)), each).to.equal('invalid_token');
        expect(await outcomeOf(bobIssuances.refresh())).to.equal('done');
        for (const each of [id, 'plain']) expect(await outcomeOf(bobIssuances.issue(each)), each).to.equal('done');
        // A new login is another authorization.
        await advanceSecond();
        expect(await outcomeOf((await logIn(ada)).issue())).to.equal('done');
        expect(await statusOf(session)).to.deep.equal([1, 0, 0, 0]);
      });

      it('issue no credential if nothing was issued before the revocation', async () => {
        const { session, logIn } = await openSharedOffer([id, 'plain']);
        const [adaIssuances, bobIssuances] = [await logIn(ada), await logIn(bob)];
        await advanceSecond();
        expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 0, pending: 0 });
        await advanceSecond();
        expect(await outcomeOf(adaIssuances.issue())).to.equal('invalid_token');
        expect(await outcomeOf(adaIssuances.refresh())).to.equal('invalid_grant');
        expect(await outcomeOf(adaIssuances.issue('plain'))).to.equal('invalid_token');
        expect(await outcomeOf(bobIssuances.issue())).to.equal('done');
        expect(await statusOf(session)).to.deep.equal([0]);
      });

      it('issue nothing for a request that is in progress during the revocation', async () => {
        const { session, logIn } = await openSharedOffer([id, 'plain']);
        const [adaIssuances, bobIssuances] = [await logIn(ada), await logIn(bob)];
        await adaIssuances.issue();
        await advanceSecond();
        const post = world.webhooks.post.bind(world.webhooks);
        const duringCall = sinon.stub(world.webhooks, 'post').callsFake(async (...call) => {
          const answer = await post(...call);
          duringCall.restore();
          await revoke({ claims: ADA });
          return answer;
        });
        expect(await outcomeOf(adaIssuances.issue())).to.equal('invalid_token');
        expect(await outcomeOf(bobIssuances.issue())).to.equal('done');
        expect(await statusOf(session)).to.deep.equal([1, 0]);
      });

      it('issue other configurations after a revocation of one configuration', async () => {
        await world.putCredential({ id: 'twin', ...fromBackend, statusManagement: true, subjectClaims: paths });
        const { session, logIn } = await openSharedOffer([id, 'twin']);
        const [adaCompleted, adaPending] = [await logIn(ada), await logIn(ada)];
        await adaCompleted.issue();
        await advanceSecond();
        expect((await revoke({ claims: ADA, credentialConfigurationId: id })).revoked).to.equal(1);
        for (const adaIssuances of [adaCompleted, adaPending]) {
          expect(await outcomeOf(adaIssuances.issue())).to.equal('credential_request_denied');
          expect(await outcomeOf(adaIssuances.issue('twin'))).to.equal('done');
          expect(await outcomeOf(adaIssuances.refresh())).to.equal('done');
        }
        expect(await statusOf(session)).to.deep.equal([1, 0, 0]);
      });

      it('defer no credential after the revocation that could be completed for the subject', async () => {
        const { logIn } = await openSharedOffer([id]);
        const [adaIssuances, bobIssuances] = [await logIn({ deferred: true }), await logIn({ deferred: true })];
        await advanceSecond();
        await revoke({ claims: ADA });
        await advanceSecond();
        const complete = async ({ issue }: typeof adaIssuances, claims: object) => {
          world.webhooks.answer = { deferred: true };
          const post = sinon.stub(world.webhooks, 'post').resolves({ status: 200, body: { deferred: true } });
          const { transaction_id: transaction = '' } = await issue();
          post.restore();
          const completion = { claims: claims as never };
          return outcomeOf(world.decideDeferred.complete(await world.caller(), transaction, completion));
        };
        expect(await complete(adaIssuances, ada)).to.equal('conflict');
        expect(await complete(bobIssuances, bob)).to.equal('done');
      });

      it('are revoked for a deferred credential that was completed before the revocation', async () => {
        const { logIn } = await openSharedOffer([id]);
        const adaIssuances = await logIn(ada);
        const post = sinon.stub(world.webhooks, 'post').resolves({ status: 200, body: { deferred: true } });
        const { transaction_id: transaction = '' } = await adaIssuances.issue();
        post.restore();
        await world.decideDeferred.complete(await world.caller(), transaction, { claims: ada as never });
        await advanceSecond();
        expect((await revoke({ claims: ADA })).revoked).to.equal(1);
        expect(await outcomeOf(adaIssuances.issue())).to.equal('invalid_token');
        expect(await outcomeOf(adaIssuances.refresh())).to.equal('invalid_grant');
      });
    });
  }

  for (const [format, id, claims] of [
    ['SD-JWT VC', 'late-card', ADA],
    ['mdoc', 'late-badge', { 'org.example.badge': ADA }],
  ] as const) {
    it(`ends a pending deferred ${format} of the subject, and of no other subject`, async () => {
      const paths = format === 'mdoc' ? [BADGE_NUMBER] : [['number']];
      const claimsWebhook = { url: 'https://backend.example/claims' };
      const config = format === 'mdoc' ? { config: MDOC } : {};
      const deferredConfiguration = { claims: null, claimsWebhook, statusManagement: true, subjectClaims: paths };
      await world.putCredential({ id, ...config, ...deferredConfiguration });
      world.webhooks.answer = { deferred: true };
      const deferIssuance = async () => {
        const token = await wallet.token(await anOffer(world, { credentialConfigurationIds: [id] }));
        const { transaction_id: transaction = '' } = await wallet.issue(token, { credential_configuration_id: id });
        return transaction;
      };
      const complete = async (transaction: string, claims: object) =>
        outcomeOf(world.decideDeferred.complete(await world.caller(), transaction, { claims: claims as never }));
      const statusOfTransaction = async (transaction: string) => (await world.store.read(ACME).deferred(transaction))?.status;
      const [adaIssuance, bobIssuances] = [await deferIssuance(), await deferIssuance()];
      world.clock.time += 1000;
      expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 0, pending: 0 });
      expect(await complete(adaIssuance, claims)).to.equal('conflict');
      expect(await statusOfTransaction(adaIssuance)).to.equal('failed');
      expect(await complete(adaIssuance, claims)).to.equal('conflict');
      const bobClaims = format === 'mdoc' ? { 'org.example.badge': BOB } : BOB;
      expect(await complete(bobIssuances, bobClaims)).to.equal('done');
      // A request after the revocation is another issuance.
      world.clock.time += 1000;
      expect(await complete(await deferIssuance(), claims)).to.equal('done');
    });
  }

  for (const [format, id, ada, bob, paths] of [
    ['SD-JWT VC', 'shared-card', ADA, BOB, [['number']]],
    ['mdoc', 'shared-badge', { 'org.example.badge': ADA }, { 'org.example.badge': BOB }, [BADGE_NUMBER]],
  ] as const) {
    describe(`the authorization of a wallet for an ${format}`, () => {
      const config = {
        ...{ claims: null, claimsWebhook: { url: 'https://backend.example/claims' } },
        ...{ statusManagement: true, subjectClaims: paths, ...(format === 'mdoc' && { config: MDOC }) },
      };
      const advanceSeconds = (seconds = 1) => (world.clock.time += seconds * 1_000);
      /** Revokes in a process with another clock. */
      const revokeBy = async (seconds: number) => {
        advanceSeconds(seconds);
        await revoke({ claims: ADA });
        advanceSeconds(-seconds);
      };
      const answer = (person: JsonObject) => (world.webhooks.answer = { [id]: person, twin: person });
      const defer = async (issue: () => Promise<{ transaction_id?: string }>) => {
        const post = sinon.stub(world.webhooks, 'post').resolves({ status: 200, body: { deferred: true } });
        const { transaction_id: transaction = '' } = await issue();
        post.restore();
        return transaction;
      };
      const complete = async (transaction: string, claims: object) =>
        outcomeOf(world.decideDeferred.complete(await world.caller(), transaction, { claims: claims as never }));
      beforeEach(() => world.putCredential({ id, ...config }));

      describe('at an external authorization server', () => {
        const key = newKey();
        /** @param secondsAgo the age of the token, by its `iat`. */
        const externalToken = (sub: string, secondsAgo = 0) => {
          const cnf = { jkt: thumbprint(wallet.key.jwk as PublicJwk) };
          const times = { iat: world.seconds - secondsAgo, exp: world.seconds + 6_000 };
          const claims = { iss: UPSTREAM, sub, jti: world.random.token(), scope: id, cnf, ...times };
          world.authorizationServers.claims = claims;
          return makeJwt(key, { alg: 'ES256', typ: 'at+jwt' }, { iss: UPSTREAM, sub });
        };
        beforeEach(() => world.putIssuance({ authServers: [UPSTREAM] }));

        it('before a revocation issues no deferred credential that is requested after it', async () => {
          const request = (token: string) => () => wallet.issue(token, { credential_configuration_id: id });
          const token = externalToken('ada');
          advanceSeconds();
          await revoke({ claims: ADA });
          advanceSeconds(120);
          const adaIssuance = await defer(request(token));
          expect(await complete(adaIssuance, ada)).to.equal('conflict');
          expect((await world.store.read(ACME).deferred(adaIssuance))?.status).to.equal('failed');
          expect(await complete(await defer(request(token)), bob)).to.equal('done');
          expect(await complete(await defer(request(externalToken('ada'))), ada), 'a later login').to.equal('done');
        });

        it('is considered a minute earlier than the iat of the token, since its clock may be ahead', async () => {
          await revoke({ claims: ADA });
          advanceSeconds(120);
          for (const [secondsAgo, outcome] of [
            [60, 'conflict'],
            [59, 'done'],
          ] as const) {
            const request = () => wallet.issue(externalToken('ada', secondsAgo), { credential_configuration_id: id });
            expect(await complete(await defer(request), ada), String(secondsAgo)).to.equal(outcome);
          }
        });
      });

      describe('by a code of the built-in server', () => {
        const approveIssuance = async (person: JsonObject, ids: readonly string[] = [id]) => {
          const { session } = await anOffer(world, { flow: 'authorization_code', credentialConfigurationIds: ids });
          const personalWallet = new Wallet(world);
          const code = await personalWallet.approve(await personalWallet.push({ issuer_state: session.publicId, scope: ids.join(' ') }));
          const redeem = async () => {
            const { body } = await personalWallet.redeemCode(code);
            const issue = (configurationId: string = id) => {
              answer(person);
              return personalWallet.issue(body.access_token, { credential_configuration_id: configurationId });
            };
            const request = personalWallet.createOAuthRequest('token', { client_id: AUTHORIZATION_REQUEST.client_id });
            return {
              session: session.id,
              ...{ wallet: personalWallet, token: body.access_token, issue },
              refresh: () => personalWallet.refresh(body.refresh_token, { request }),
            };
          };
          return redeem;
        };

        for (const [location, skew] of [
          ['by a process with the same clock', 0],
          ['by a process whose clock is 30 seconds behind', -30],
          ['by a process whose clock is 30 seconds ahead', 30],
        ] as const) {
          it(`before a revocation ${location} issues nothing, at any time of the redemption`, async () => {
            const [adaIssuances, bobIssuances] = [await approveIssuance(ada), await approveIssuance(bob)];
            advanceSeconds();
            await revokeBy(skew);
            advanceSeconds();
            const adaIssuance = await adaIssuances();
            expect(await outcomeOf(adaIssuance.issue())).to.equal('invalid_token');
            expect(await outcomeOf(adaIssuance.refresh())).to.equal('invalid_grant');
            expect(await outcomeOf((await bobIssuances()).issue())).to.equal('done');
          });

          it(`after a revocation ${location} issues a credential at once`, async () => {
            const before = await (await approveIssuance(ada))();
            await before.issue();
            await revokeBy(skew);
            expect(await outcomeOf((await (await approveIssuance(ada))()).issue())).to.equal('done');
          });
        }

        it('before a revocation issues no deferred credential, at any time of the redemption', async () => {
          const redeem = await approveIssuance(ada);
          await revokeBy(-30);
          advanceSeconds();
          const { issue } = await redeem();
          expect(await complete(await defer(issue), ada)).to.equal('conflict');
        });

        it('issues no deferred credential that was revoked before the wallet fetched it', async () => {
          await world.putCredential({ id: 'twin', ...config });
          const [adaIssuance, bobIssuances] = [
            await (await approveIssuance(ada, [id, 'twin']))(),
            await (await approveIssuance(bob, [id, 'twin']))(),
          ];
          const fetchDeferred = async ({ wallet: personalWallet, token }: typeof adaIssuance, transaction_id: string) => {
            const request = personalWallet.protectedRequest(token, 'deferred_credential', { transaction_id });
            return outcomeOf(world.retrieveDeferred.execute(ACME, request, { form: 'post' }));
          };
          const [adaIssuances, bobDeferred] = [await defer(adaIssuance.issue), await defer(bobIssuances.issue)];
          expect(await complete(adaIssuances, ada)).to.equal('done');
          expect(await complete(bobDeferred, bob)).to.equal('done');
          advanceSeconds();
          await revoke({ claims: ADA, credentialConfigurationId: id });
          expect(await fetchDeferred(adaIssuance, adaIssuances)).to.equal('credential_request_denied');
          expect((await world.store.read(ACME).deferred(adaIssuances))?.status).to.equal('failed');
          expect(await fetchDeferred(bobIssuances, bobDeferred)).to.equal('done');
          expect(await outcomeOf(adaIssuance.issue('twin'))).to.equal('done');
        });

        it('is kept for one subject if it issued credentials to two and the other is revoked', async () => {
          await world.putCredential({ id: 'twin', ...config });
          const grant = await (await approveIssuance(ada, [id, 'twin']))();
          const issueForPerson = (person: JsonObject, configurationId: string) => {
            answer(person);
            return grant.wallet.issue(grant.token, { credential_configuration_id: configurationId });
          };
          for (const [person, configurationId] of [
            [ada, id],
            [bob, id],
            [bob, 'twin'],
          ] as const) {
            await issueForPerson(person, configurationId);
            advanceSeconds();
          }
          expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 1, pending: 0 });
          expect(await statusOf(grant.session)).to.deep.equal([1, 0, 0]);
          for (const each of [id, 'twin']) {
            expect(await outcomeOf(issueForPerson(ada, each)), each).to.equal('credential_request_denied');
            expect(await outcomeOf(issueForPerson(bob, each)), each).to.equal('done');
          }
          expect(await outcomeOf(grant.refresh())).to.equal('done');
          // After the second subject, no issuance remains.
          expect((await revoke({ claims: BOB })).revoked).to.equal(4);
          expect(await outcomeOf(grant.refresh())).to.equal('invalid_grant');
        });
      });

      describe('by a pre-authorized code', () => {
        const offerTo = async (people: Readonly<Record<string, JsonObject>>) => {
          const ids = Object.keys(people);
          const credentialClaims = Object.fromEntries(Object.entries(people).map(([each, claims]) => [each, { type: 'inline', claims }]));
          const offer = await anOffer(world, { credentialConfigurationIds: ids, credentialClaims });
          const redeem = async () => {
            const token = await wallet.token(offer);
            return (configurationId: string = id) => wallet.issue(token, { credential_configuration_id: configurationId });
          };
          return { session: offer.session.id, redeem };
        };

        it('before a revocation issues nothing when the offer is redeemed after it', async () => {
          const [adaIssuances, bobIssuances] = [await offerTo({ [id]: ada }), await offerTo({ [id]: bob })];
          advanceSeconds();
          await revokeBy(-30);
          advanceSeconds();
          expect(await outcomeOf((await adaIssuances.redeem())())).to.equal('invalid_token');
          expect(await outcomeOf((await bobIssuances.redeem())())).to.equal('done');
          const otherIssue = await offerTo({ [id]: ada });
          expect(await outcomeOf((await otherIssue.redeem())()), 'a later offer').to.equal('done');
        });

        it('is kept for one subject if its offer is for two and the other is revoked', async () => {
          await world.putCredential({ id: 'twin', ...config });
          for (const issuedFirst of [[id, 'twin'], ['twin']]) {
            const { session, redeem } = await offerTo({ [id]: ada, twin: bob });
            const issue = await redeem();
            for (const each of issuedFirst) {
              await issue(each);
              advanceSeconds();
            }
            await revoke({ claims: ADA });
            expect(await statusOf(session)).to.deep.equal(issuedFirst.map((each) => (each === id ? 1 : 0)));
            expect(await outcomeOf(issue())).to.equal('credential_request_denied');
            expect(await outcomeOf(issue('twin'))).to.equal('done');
          }
        });
      });
    });
  }

  it('accepts the claim in the call if a configuration has none', async () => {
    const adaSession = await issueTo(ADA);
    await world.putCredential({ id: 'card', statusManagement: true });
    await world.putCredential({ id: 'other', statusManagement: true });
    expect(await outcomeOf(revoke({ claims: { name: 'Ada' } }))).to.equal('invalid_input');
    expect((await revoke({ claims: ADA, subjectClaims: [['number']] })).revoked).to.equal(1);
    expect(await statusOf(adaSession.session)).to.deep.equal([1]);
  });

  it('names a configuration without a subject claim in the error', async () => {
    await world.putCredential({ id: 'plain', statusManagement: true });
    const problemsOf = async (revocation: object) => {
      const error = await revoke(revocation).catch((reason: unknown) => reason);
      return error instanceof Failure ? error.details.errors : undefined;
    };
    const message =
      'plain does not identify subjects; set its subjectClaims for future credentials, or send here ' + 'its former subjectClaims';
    expect(await problemsOf({ claims: ADA, credentialConfigurationId: 'plain' })).to.deep.equal([
      { path: 'credentialConfigurationId', message },
    ]);
    const [missingProblem] = (await problemsOf({ claims: ADA, credentialConfigurationId: 'gone' })) ?? [];
    expect(missingProblem?.path).to.equal('credentialConfigurationId');
    expect(missingProblem?.message).to.include('there is no configuration gone');
    for (const id of ['card', 'other', 'badge']) await world.putCredential({ id, statusManagement: true });
    const [statuses] = (await problemsOf({ claims: ADA })) ?? [];
    expect(statuses?.path).to.equal('claims');
    expect(statuses?.message).to.include('no credential configuration identifies');
  });

  it('restricts a client to its allowed configurations, and to the named one', async () => {
    const [cardSession, otherSession] = [await issueTo(ADA), await issueTo(ADA, ['other'])];
    const restricted = { allowedIssuanceConfigs: ['other'] };
    expect(await outcomeOf(revoke({ claims: ADA, credentialConfigurationId: 'card' }, restricted))).to.equal('forbidden');
    expect((await revoke({ claims: ADA }, restricted)).revoked).to.equal(1);
    expect([await statusOf(cardSession.session), await statusOf(otherSession.session)]).to.deep.equal([[0], [1]]);
    expect((await revoke({ claims: ADA, credentialConfigurationId: 'other' })).revoked).to.equal(0);
    expect((await revoke({ claims: ADA, credentialConfigurationId: 'card' })).revoked).to.equal(1);
  });

  it('does not affect another tenant, which has a different fingerprint for the same subject', async () => {
    const adaSession = await issueTo(ADA);
    await world.addTenant('bravo' as typeof ACME);
    await world.putCredential({ id: 'card', statusManagement: true, subjectClaims: [['number']] }, 'bravo' as typeof ACME);
    expect((await revoke({ claims: ADA }, {}, 'bravo' as typeof ACME)).revoked).to.equal(0);
    expect(await statusOf(adaSession.session)).to.deep.equal([0]);
    const acme = (await world.caller()).tenant;
    const bravo = (await world.caller('bravo' as typeof ACME)).tenant;
    const rules = [{ paths: [['number']], isFlat: false }];
    const { subjectFingerprints } = world;
    const statuses = await Promise.all([acme, bravo].map((tenant) => subjectFingerprints.ofDescribed(tenant, ADA, rules)));
    expect(statuses[0]).to.not.deep.equal(statuses[1]);
  });

  it('rejects claims that match more credentials than one subject could have', async () => {
    await issueTo(ADA);
    const maintenance = { ...world.store.maintenance, countBatches: async () => MAX_BATCHES + 1 };
    sinon.stub(world.store, 'maintenance').get(() => maintenance);
    expect(await outcomeOf(revoke({ claims: ADA }))).to.equal('conflict');
  });

  it('continues if the session issues concurrently, and revokes that credential too', async () => {
    await world.putCredential({ id: 'shared-card', ...SHARED_CARD });
    const { session, logIn } = await openSharedOffer(['shared-card']);
    const [adaIssuances, bobIssuances] = [await logIn(ADA), await logIn(BOB)];
    await adaIssuances.issue();
    world.clock.time += 1_000;
    const { store } = world;
    const commit = store.commit.bind(store);
    let isFirst = true;
    sinon.stub(store, 'commit').callsFake(async (tenantId, change: Change, now) => {
      if (change.statuses !== undefined && isFirst) {
        isFirst = false;
        await bobIssuances.issue();
      }
      return commit(tenantId, change, now);
    });
    expect((await revoke({ claims: ADA })).revoked).to.equal(1);
    expect(isFirst).to.equal(false);
    expect(await statusOf(session)).to.deep.equal([1, 0]);
  });

  it('counts each credential once, for any number of simultaneous revocations', async () => {
    const [adaSession, otherAdaSession] = [await issueTo(ADA), await issueTo(ADA, ['other'])];
    const calls = Array.from({ length: 12 }, () => revoke({ claims: ADA }));
    const jobs = Array.from({ length: 4 }, () => world.fulfilRevocations.execute(world.clock.now(), 5));
    const counts = (await Promise.all(calls)).map(({ revoked }) => revoked);
    await Promise.all(jobs);
    expect(counts.reduce((sum, count) => sum + count, 0)).to.be.at.most(2);
    expect([await statusOf(adaSession.session), await statusOf(otherAdaSession.session)]).to.deep.equal([[1], [1]]);
  });

  it('does not execute the order of another caller with other configurations', async () => {
    const [adaSession, otherAdaSession] = [await issueTo(ADA), await issueTo(ADA, ['other'])];
    const revoking = sinon.stub(world.subjectRevoker, 'revoke').rejects(new Error('gone'));
    await revoke({ claims: ADA }).catch(() => {});
    revoking.restore();
    const restricted = { allowedIssuanceConfigs: ['other'] };
    expect(await revoke({ claims: ADA }, restricted)).to.deep.equal({ revoked: 1, pending: 0 });
    expect([await statusOf(adaSession.session), await statusOf(otherAdaSession.session)]).to.deep.equal([[0], [1]]);
  });

  it('finds credentials that were issued while an earlier order was completed', async () => {
    const adaSession = await issueTo(ADA);
    const fulfilRevocation = world.store.maintenance.fulfilOrder;
    let isFirst = true;
    const maintenance = {
      ...world.store.maintenance,
      fulfilOrder: async (order: RevocationOrder) => {
        if (isFirst) {
          isFirst = false;
          // The session continues, since another user has accepted its offer.
          const { batches = [] } = (await world.store.read(ACME).issued(order.sessionId)) ?? {};
          const issued = { ...batches[0], id: 'again', firstCounter: 7 } as IssuedBatch;
          const authorizedAt = new Date(world.clock.time + 1_000);
          const identifies = { fingerprint: order.fingerprint, batch: issued, endsAt: null, authorizedAt };
          const session = { id: order.sessionId, anytime: SESSION_STATUSES, counts: true } as const;
          const change = { issued, identifies, session };
          expect((await world.store.commit(ACME, change, world.clock.now())).done).to.equal(true);
          await world.store.maintenance.orderRevocations(ACME, [order.fingerprint], undefined, world.clock.now());
        }
        await fulfilRevocation(order);
      },
    };
    const stub = sinon.stub(world.store, 'maintenance').get(() => maintenance);
    await revoke({ claims: ADA });
    stub.restore();
    world.clock.time += 1_000;
    expect(await world.fulfilRevocations.execute(world.clock.now(), 5)).to.equal(1);
    expect(await statusOf(adaSession.session)).to.deep.equal([1, 1]);
  });

  it('completes only after everything is revoked, also with concurrent issuances and revocations', async () => {
    await world.putCredential({ id: 'shared-card', ...SHARED_CARD });
    const { session, logIn } = await openSharedOffer(['shared-card']);
    const [adaIssuances, bobIssuances] = [await logIn(ADA), await logIn(BOB)];
    await adaIssuances.issue();
    world.clock.time += 1_000;
    await bobIssuances.issue();
    const originalRevoke = world.store.maintenance;
    let isFirst = true;
    const maintenance = {
      ...originalRevoke,
      batchesOf: async (order: RevocationOrder) => {
        if (isFirst) {
          isFirst = false;
          // Between its two reads, another process revokes all entries and the session issues more.
          await world.fulfilRevocations.execute(world.clock.now(), 5);
          world.clock.time += 1_000;
          await (await logIn(ADA)).issue();
        }
        return originalRevoke.batchesOf(order);
      },
    };
    const stub = sinon.stub(world.store, 'maintenance').get(() => maintenance);
    await revoke({ claims: ADA });
    stub.restore();
    await revoke({ claims: ADA });
    expect(await statusOf(session)).to.deep.equal([1, 0, 1]);
  });

  it('is continued by the job after an interruption, once, and for each session separately', async () => {
    const [adaSession, otherAdaSession] = [await issueTo(ADA), await issueTo(ADA, ['other'])];
    const revoking = sinon.stub(world.subjectRevoker, 'revoke').rejects(new Error('gone'));
    await outcomeOf(revoke({ claims: ADA }).catch((error: Error) => expect(error.message).to.equal('gone')));
    revoking.restore();
    expect([await statusOf(adaSession.session), await statusOf(otherAdaSession.session)]).to.deep.equal([[0], [0]]);
    const job = (limit: number) => world.fulfilRevocations.execute(world.clock.now(), limit);
    expect(await job(1)).to.equal(1);
    expect([...(await statusOf(adaSession.session)), ...(await statusOf(otherAdaSession.session))].sort()).to.deep.equal([0, 1]);
    expect([await job(5), await job(5)]).to.deep.equal([1, 0]);
    expect([await statusOf(adaSession.session), await statusOf(otherAdaSession.session)]).to.deep.equal([[1], [1]]);
  });

  it('continues with other sessions if one fails', async () => {
    const [adaSession, otherAdaSession] = [await issueTo(ADA), await issueTo(ADA, ['other'])];
    sinon.stub(world.subjectRevoker, 'revoke').rejects(new Error('gone'));
    await revoke({ claims: ADA }).catch(() => {});
    sinon.restore();
    const original = world.subjectRevoker.revoke.bind(world.subjectRevoker);
    const stub = sinon.stub(world.subjectRevoker, 'revoke').callsFake((tenant, order, by) => {
      if (order.sessionId === adaSession.session) throw new Error('cannot');
      return original(tenant, order, by);
    });
    const now = world.clock.now();
    expect(await world.fulfilRevocations.execute(now, 5)).to.equal(2);
    expect(await world.fulfilRevocations.execute(now, 5), 'it is pending').to.equal(0);
    stub.restore();
    expect([await statusOf(adaSession.session), await statusOf(otherAdaSession.session)]).to.deep.equal([[0], [1]]);
    expect(await world.fulfilRevocations.execute(new Date(now.getTime() + 300_000), 5)).to.equal(1);
    expect(await statusOf(adaSession.session)).to.deep.equal([1]);
  });

  it('rejects an issuance without the claims that identify its subject', async () => {
    for (const number of [null, '', ['17'], { at: 17 }, 'x'.repeat(1_001)]) {
      const claims = { name: 'Ada', number };
      expect(await outcomeOf(issueTo(claims)), String(number)).to.not.equal('done');
    }
    expect(await outcomeOf(issueTo({ name: 'Ada' }))).to.not.equal('done');
  });

  it('is configured only for credentials with a status, by paths of their format', () => {
    const parse = (changes: object) =>
      CredentialConfigurationBody.safeParse({
        ...{ id: 'card', config: { format: 'dc+sd-jwt', display: [{ name: 'Card' }] } },
        ...{ statusManagement: true, subjectClaims: [['number']], ...changes },
      });
    expect(parse({}).success).to.equal(true);
    for (const changes of [
      { statusManagement: false },
      { config: MDOC },
      ...[[], [[]], [['']], [[3]], 'number'].map((subjectClaims) => ({ subjectClaims })),
    ])
      expect(parse(changes).error?.issues[0]?.path[0], JSON.stringify(changes)).to.equal('subjectClaims');
  });
});
