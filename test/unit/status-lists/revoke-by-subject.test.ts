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
import { anOffer, endOf, Wallet, WalletWorld } from '../wallet-kit.ts';

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
    const identified = { statusManagement: true, subjectClaims: [['number']] };
    for (const id of ['card', 'other']) await world.offers({ id, ...identified });
    await world.offers({ id: 'badge', config: MDOC, ...identified, subjectClaims: [BADGE_NUMBER] });
  });
  afterEach(() => sinon.restore());

  const inline = (ids: readonly string[], claims: object) => Object.fromEntries(ids.map((id) => [id, { type: 'inline', claims }]));
  const held = async (claims: object, ids: readonly string[] = ['card']) => {
    const made = await anOffer(world, { credentialConfigurationIds: ids, credentialClaims: inline(ids, claims) });
    const token = await wallet.token(made);
    const issue = (id = ids[0] ?? '') => wallet.issue(token, { credential_configuration_id: id });
    return { session: made.session.id, issue, issued: await issue() };
  };
  /** A shared offer, whose claims come from a backend that knows the person who logged in. */
  const shared = async (ids: readonly string[]) => {
    const { session } = await anOffer(world, { flow: 'authorization_code', credentialConfigurationIds: ids });
    const logIn = async (person: JsonObject) => {
      const own = new Wallet(world);
      const requestUri = await own.push({ issuer_state: session.publicId, scope: ids.join(' ') });
      const { body } = await own.redeemCode(await own.approve(requestUri));
      const client = { client_id: AUTHORIZATION_REQUEST.client_id };
      return {
        issue: (id = ids[0] ?? '') => {
          world.webhooks.answer = Object.fromEntries(ids.map((each) => [each, person]));
          return own.issue(body.access_token, { credential_configuration_id: id });
        },
        refresh: async () => {
          const request = own.oauth('token', client);
          return own.refresh(body.refresh_token, { request });
        },
      };
    };
    return { session: session.id, logIn };
  };
  const statusOf = async (session: string): Promise<number[]> => {
    const read = await world.store.read(ACME).issued(session as never);
    const lists = await (await world.caller()).tenant.statusLists();
    const all: number[] = [];
    for (const { statusListId, firstCounter, count } of read?.batches ?? []) {
      const list = lists.find(({ id }) => id === statusListId);
      if (list === undefined || firstCounter === null) continue;
      const entries = await world.store.read(ACME).statusEntries(list.id, 0);
      for (const index of world.statusAllocator.indicesOf(ACME, list, firstCounter, count))
        all.push(entries.find((entry) => entry.index === index)?.status ?? 0);
    }
    return all;
  };
  const revoke = async (revocation: object, rights: Partial<TenantCaller> = {}, tenantId = ACME) => {
    const caller = { ...(await world.caller(tenantId)), ...rights };
    return world.revokeBySubject.execute(caller, SubjectRevocation.parse(revocation));
  };

  it('revokes the credentials of all sessions of the subject, and no others', async () => {
    const [one, two, bob] = [await held(ADA), await held({ ...ADA, name: 'Ada L.' }, ['other']), await held(BOB)];
    expect(await revoke({ claims: { number: '17', name: 'whatever' } })).to.deep.equal({ revoked: 2, pending: 0 });
    expect([await statusOf(one.session), await statusOf(two.session), await statusOf(bob.session)]).to.deep.equal([[1], [1], [0]]);
    expect(await endOf(one.issue()), 'its wallet fetches no other one').to.equal('invalid_token');
    expect(await endOf(bob.issue())).to.equal('done');
    expect(await revoke({ claims: ADA }), 'once').to.deep.equal({ revoked: 0, pending: 0 });
  });

  it('revokes entries of a list that another process created concurrently', async () => {
    const one = await held(ADA);
    const caller = await world.caller();
    const behind = sinon.stub(TenantConfiguration.prototype, 'statusLists').resolves([]);
    const revoked = await world.revokeBySubject.execute(caller, SubjectRevocation.parse({ claims: ADA }));
    behind.restore();
    expect(revoked).to.deep.equal({ revoked: 1, pending: 0 });
    expect(await statusOf(one.session)).to.deep.equal([1]);
  });

  it('is final, also for previously suspended credentials (ARF VCR_04)', async () => {
    const one = await held(ADA);
    expect((await revoke({ claims: ADA })).revoked).to.equal(1);
    const restore = (status: 0 | 2) =>
      world.caller().then((caller) => world.revokeSession.execute(cachedCaller(caller), { sessionId: one.session, status }));
    for (const status of [0, 2] as const) expect(await endOf(restore(status))).to.be.oneOf(['conflict', 'invalid_input']);
    expect(await statusOf(one.session)).to.deep.equal([1]);
  });

  it('distinguishes types and values', async () => {
    const one = await held(ADA);
    for (const number of ['170', '17 ', 17, '', 'Ada'])
      if (number === '') expect(await endOf(revoke({ claims: { number } }))).to.equal('invalid_input');
      else expect((await revoke({ claims: { number } })).revoked, String(number)).to.equal(0);
    expect(await statusOf(one.session)).to.deep.equal([0]);
  });

  it('finds an mdoc by its elements, with and without their namespace', async () => {
    for (const claims of [{ number: '17' }, { 'org.example.badge': { number: '17' } }]) {
      const one = await held(ADA, ['badge']);
      expect((await revoke({ claims })).revoked).to.equal(1);
      expect(await statusOf(one.session)).to.deep.equal([1]);
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
        await world.offers({ id, ...fromBackend, statusManagement: true, subjectClaims: paths });
        await world.offers({ id: 'plain', ...fromBackend });
      });
      const later = async () => {
        world.clock.time += 1_000;
      };

      it('issue no other credential after the revocation, unlike those of another subject', async () => {
        const { session, logIn } = await shared([id, 'plain']);
        const [adas, bobs] = [await logIn(ada), await logIn(bob)];
        await adas.issue();
        await later();
        await bobs.issue();
        await later();
        expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 1, pending: 0 });
        expect(await endOf(adas.refresh())).to.equal('invalid_grant');
        for (const each of [id, 'plain']) expect(await endOf(adas.issue(each)), each).to.equal('invalid_token');
        expect(await endOf(bobs.refresh())).to.equal('done');
        for (const each of [id, 'plain']) expect(await endOf(bobs.issue(each)), each).to.equal('done');
        // A new login is another authorization.
        await later();
        expect(await endOf((await logIn(ada)).issue())).to.equal('done');
        expect(await statusOf(session)).to.deep.equal([1, 0, 0, 0]);
      });

      it('issue no credential if nothing was issued before the revocation', async () => {
        const { session, logIn } = await shared([id, 'plain']);
        const [adas, bobs] = [await logIn(ada), await logIn(bob)];
        await later();
        expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 0, pending: 0 });
        await later();
        expect(await endOf(adas.issue())).to.equal('invalid_token');
        expect(await endOf(adas.refresh())).to.equal('invalid_grant');
        expect(await endOf(adas.issue('plain'))).to.equal('invalid_token');
        expect(await endOf(bobs.issue())).to.equal('done');
        expect(await statusOf(session)).to.deep.equal([0]);
      });

      it('issue nothing for a request that is in progress during the revocation', async () => {
        const { session, logIn } = await shared([id, 'plain']);
        const [adas, bobs] = [await logIn(ada), await logIn(bob)];
        await adas.issue();
        await later();
        const post = world.webhooks.post.bind(world.webhooks);
        const during = sinon.stub(world.webhooks, 'post').callsFake(async (...call) => {
          const answer = await post(...call);
          during.restore();
          await revoke({ claims: ADA });
          return answer;
        });
        expect(await endOf(adas.issue())).to.equal('invalid_token');
        expect(await endOf(bobs.issue())).to.equal('done');
        expect(await statusOf(session)).to.deep.equal([1, 0]);
      });

      it('issue other configurations after a revocation of one configuration', async () => {
        await world.offers({ id: 'twin', ...fromBackend, statusManagement: true, subjectClaims: paths });
        const { session, logIn } = await shared([id, 'twin']);
        const [issued, pending] = [await logIn(ada), await logIn(ada)];
        await issued.issue();
        await later();
        expect((await revoke({ claims: ADA, credentialConfigurationId: id })).revoked).to.equal(1);
        for (const adas of [issued, pending]) {
          expect(await endOf(adas.issue())).to.equal('credential_request_denied');
          expect(await endOf(adas.issue('twin'))).to.equal('done');
          expect(await endOf(adas.refresh())).to.equal('done');
        }
        expect(await statusOf(session)).to.deep.equal([1, 0, 0]);
      });

      it('defer no credential after the revocation that could be completed for the subject', async () => {
        const { logIn } = await shared([id]);
        const [adas, bobs] = [await logIn({ deferred: true }), await logIn({ deferred: true })];
        await later();
        await revoke({ claims: ADA });
        await later();
        const complete = async ({ issue }: typeof adas, claims: object) => {
          world.webhooks.answer = { deferred: true };
          const post = sinon.stub(world.webhooks, 'post').resolves({ status: 200, body: { deferred: true } });
          const { transaction_id: transaction = '' } = await issue();
          post.restore();
          const completion = { claims: claims as never };
          return endOf(world.decideDeferred.complete(await world.caller(), transaction, completion));
        };
        expect(await complete(adas, ada)).to.equal('conflict');
        expect(await complete(bobs, bob)).to.equal('done');
      });

      it('are revoked for a deferred credential that was completed before the revocation', async () => {
        const { logIn } = await shared([id]);
        const adas = await logIn(ada);
        const post = sinon.stub(world.webhooks, 'post').resolves({ status: 200, body: { deferred: true } });
        const { transaction_id: transaction = '' } = await adas.issue();
        post.restore();
        await world.decideDeferred.complete(await world.caller(), transaction, { claims: ada as never });
        await later();
        expect((await revoke({ claims: ADA })).revoked).to.equal(1);
        expect(await endOf(adas.issue())).to.equal('invalid_token');
        expect(await endOf(adas.refresh())).to.equal('invalid_grant');
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
      const later = { claims: null, claimsWebhook, statusManagement: true, subjectClaims: paths };
      await world.offers({ id, ...config, ...later });
      world.webhooks.answer = { deferred: true };
      const promise = async () => {
        const token = await wallet.token(await anOffer(world, { credentialConfigurationIds: [id] }));
        const { transaction_id: transaction = '' } = await wallet.issue(token, { credential_configuration_id: id });
        return transaction;
      };
      const complete = async (transaction: string, of: object) =>
        endOf(world.decideDeferred.complete(await world.caller(), transaction, { claims: of as never }));
      const statusOfTransaction = async (transaction: string) => (await world.store.read(ACME).deferred(transaction))?.status;
      const [mine, bobs] = [await promise(), await promise()];
      world.clock.time += 1000;
      expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 0, pending: 0 });
      expect(await complete(mine, claims)).to.equal('conflict');
      expect(await statusOfTransaction(mine)).to.equal('failed');
      expect(await complete(mine, claims)).to.equal('conflict');
      const ofBob = format === 'mdoc' ? { 'org.example.badge': BOB } : BOB;
      expect(await complete(bobs, ofBob)).to.equal('done');
      // What the wallet asks for after the revocation is another issuance.
      world.clock.time += 1000;
      expect(await complete(await promise(), claims)).to.equal('done');
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
      const later = (seconds = 1) => (world.clock.time += seconds * 1_000);
      /** Revokes in a process whose clock differs. */
      const revokeBy = async (seconds: number) => {
        later(seconds);
        await revoke({ claims: ADA });
        later(-seconds);
      };
      const answer = (person: JsonObject) => (world.webhooks.answer = { [id]: person, twin: person });
      const defer = async (issue: () => Promise<{ transaction_id?: string }>) => {
        const post = sinon.stub(world.webhooks, 'post').resolves({ status: 200, body: { deferred: true } });
        const { transaction_id: transaction = '' } = await issue();
        post.restore();
        return transaction;
      };
      const complete = async (transaction: string, claims: object) =>
        endOf(world.decideDeferred.complete(await world.caller(), transaction, { claims: claims as never }));
      beforeEach(() => world.offers({ id, ...config }));

      describe('at an external authorization server', () => {
        const key = newKey();
        /** @param secondsAgo before now: the `iat` of the token. */
        const externalToken = (sub: string, secondsAgo = 0) => {
          const cnf = { jkt: thumbprint(wallet.key.jwk as PublicJwk) };
          const times = { iat: world.seconds - secondsAgo, exp: world.seconds + 6_000 };
          const claims = { iss: UPSTREAM, sub, jti: world.random.token(), scope: id, cnf, ...times };
          world.authorizationServers.claims = claims;
          return makeJwt(key, { alg: 'ES256', typ: 'at+jwt' }, { iss: UPSTREAM, sub });
        };
        beforeEach(() => world.issues({ authServers: [UPSTREAM] }));

        it('before a revocation issues no deferred credential that is requested after it', async () => {
          const request = (token: string) => () => wallet.issue(token, { credential_configuration_id: id });
          const token = externalToken('ada');
          later();
          await revoke({ claims: ADA });
          later(120);
          const mine = await defer(request(token));
          expect(await complete(mine, ada)).to.equal('conflict');
          expect((await world.store.read(ACME).deferred(mine))?.status).to.equal('failed');
          expect(await complete(await defer(request(token)), bob)).to.equal('done');
          expect(await complete(await defer(request(externalToken('ada'))), ada), 'a later login').to.equal('done');
        });

        it('is considered a minute earlier than the iat of the token, since its clock may be ahead', async () => {
          await revoke({ claims: ADA });
          later(120);
          for (const [secondsAgo, end] of [
            [60, 'conflict'],
            [59, 'done'],
          ] as const) {
            const request = () => wallet.issue(externalToken('ada', secondsAgo), { credential_configuration_id: id });
            expect(await complete(await defer(request), ada), String(secondsAgo)).to.equal(end);
          }
        });
      });

      describe('by a code of the built-in server', () => {
        const approved = async (person: JsonObject, ids: readonly string[] = [id]) => {
          const { session } = await anOffer(world, { flow: 'authorization_code', credentialConfigurationIds: ids });
          const own = new Wallet(world);
          const code = await own.approve(await own.push({ issuer_state: session.publicId, scope: ids.join(' ') }));
          const redeem = async () => {
            const { body } = await own.redeemCode(code);
            const issue = (of: string = id) => {
              answer(person);
              return own.issue(body.access_token, { credential_configuration_id: of });
            };
            const request = own.oauth('token', { client_id: AUTHORIZATION_REQUEST.client_id });
            return {
              session: session.id,
              ...{ wallet: own, token: body.access_token, issue },
              refresh: () => own.refresh(body.refresh_token, { request }),
            };
          };
          return redeem;
        };

        for (const [where, skew] of [
          ['by a process with the same clock', 0],
          ['by a process whose clock is 30 seconds behind', -30],
          ['by a process whose clock is 30 seconds ahead', 30],
        ] as const) {
          it(`before a revocation ${where} issues nothing, at any time of the redemption`, async () => {
            const [adas, bobs] = [await approved(ada), await approved(bob)];
            later();
            await revokeBy(skew);
            later();
            const mine = await adas();
            expect(await endOf(mine.issue())).to.equal('invalid_token');
            expect(await endOf(mine.refresh())).to.equal('invalid_grant');
            expect(await endOf((await bobs()).issue())).to.equal('done');
          });

          it(`after a revocation ${where} issues a credential at once`, async () => {
            const before = await (await approved(ada))();
            await before.issue();
            await revokeBy(skew);
            expect(await endOf((await (await approved(ada))()).issue())).to.equal('done');
          });
        }

        it('before a revocation issues no deferred credential, at any time of the redemption', async () => {
          const redeem = await approved(ada);
          await revokeBy(-30);
          later();
          const { issue } = await redeem();
          expect(await complete(await defer(issue), ada)).to.equal('conflict');
        });

        it('issues no deferred credential that was revoked before the wallet fetched it', async () => {
          await world.offers({ id: 'twin', ...config });
          const [mine, bobs] = [await (await approved(ada, [id, 'twin']))(), await (await approved(bob, [id, 'twin']))()];
          const fetched = async ({ wallet: own, token }: typeof mine, transaction_id: string) => {
            const request = own.asking(token, 'deferred_credential', { transaction_id });
            return endOf(world.retrieveDeferred.execute(ACME, request, { form: 'post' }));
          };
          const [adas, other] = [await defer(mine.issue), await defer(bobs.issue)];
          expect(await complete(adas, ada)).to.equal('done');
          expect(await complete(other, bob)).to.equal('done');
          later();
          await revoke({ claims: ADA, credentialConfigurationId: id });
          expect(await fetched(mine, adas)).to.equal('credential_request_denied');
          expect((await world.store.read(ACME).deferred(adas))?.status).to.equal('failed');
          expect(await fetched(bobs, other)).to.equal('done');
          expect(await endOf(mine.issue('twin'))).to.equal('done');
        });

        it('is kept for one subject if it issued credentials to two and the other is revoked', async () => {
          await world.offers({ id: 'twin', ...config });
          const grant = await (await approved(ada, [id, 'twin']))();
          const issueFor = (person: JsonObject, of: string) => {
            answer(person);
            return grant.wallet.issue(grant.token, { credential_configuration_id: of });
          };
          for (const [person, of] of [
            [ada, id],
            [bob, id],
            [bob, 'twin'],
          ] as const) {
            await issueFor(person, of);
            later();
          }
          expect(await revoke({ claims: ADA })).to.deep.equal({ revoked: 1, pending: 0 });
          expect(await statusOf(grant.session)).to.deep.equal([1, 0, 0]);
          for (const each of [id, 'twin']) {
            expect(await endOf(issueFor(ada, each)), each).to.equal('credential_request_denied');
            expect(await endOf(issueFor(bob, each)), each).to.equal('done');
          }
          expect(await endOf(grant.refresh())).to.equal('done');
          // With the second person nobody is left whom it could serve.
          expect((await revoke({ claims: BOB })).revoked).to.equal(4);
          expect(await endOf(grant.refresh())).to.equal('invalid_grant');
        });
      });

      describe('by a pre-authorized code', () => {
        const offered = async (people: Readonly<Record<string, JsonObject>>) => {
          const ids = Object.keys(people);
          const credentialClaims = Object.fromEntries(Object.entries(people).map(([each, claims]) => [each, { type: 'inline', claims }]));
          const made = await anOffer(world, { credentialConfigurationIds: ids, credentialClaims });
          const redeem = async () => {
            const token = await wallet.token(made);
            return (of: string = id) => wallet.issue(token, { credential_configuration_id: of });
          };
          return { session: made.session.id, redeem };
        };

        it('before a revocation issues nothing when the offer is redeemed after it', async () => {
          const [adas, bobs] = [await offered({ [id]: ada }), await offered({ [id]: bob })];
          later();
          await revokeBy(-30);
          later();
          expect(await endOf((await adas.redeem())())).to.equal('invalid_token');
          expect(await endOf((await bobs.redeem())())).to.equal('done');
          const another = await offered({ [id]: ada });
          expect(await endOf((await another.redeem())()), 'a later offer').to.equal('done');
        });

        it('is kept for one subject if its offer is for two and the other is revoked', async () => {
          await world.offers({ id: 'twin', ...config });
          for (const issuedFirst of [[id, 'twin'], ['twin']]) {
            const { session, redeem } = await offered({ [id]: ada, twin: bob });
            const issue = await redeem();
            for (const each of issuedFirst) {
              await issue(each);
              later();
            }
            await revoke({ claims: ADA });
            expect(await statusOf(session)).to.deep.equal(issuedFirst.map((each) => (each === id ? 1 : 0)));
            expect(await endOf(issue())).to.equal('credential_request_denied');
            expect(await endOf(issue('twin'))).to.equal('done');
          }
        });
      });
    });
  }

  it('accepts the claim in the call if a configuration has none', async () => {
    const one = await held(ADA);
    await world.offers({ id: 'card', statusManagement: true });
    await world.offers({ id: 'other', statusManagement: true });
    expect(await endOf(revoke({ claims: { name: 'Ada' } }))).to.equal('invalid_input');
    expect((await revoke({ claims: ADA, subjectClaims: [['number']] })).revoked).to.equal(1);
    expect(await statusOf(one.session)).to.deep.equal([1]);
  });

  it('names a configuration without a subject claim in the error', async () => {
    await world.offers({ id: 'plain', statusManagement: true });
    const fault = async (revocation: object) => {
      const error = await revoke(revocation).catch((refusal: unknown) => refusal);
      return error instanceof Failure ? error.details.errors : undefined;
    };
    const message =
      'plain does not identify subjects; set its subjectClaims for future credentials, or send here ' + 'its former subjectClaims';
    expect(await fault({ claims: ADA, credentialConfigurationId: 'plain' })).to.deep.equal([
      { path: 'credentialConfigurationId', message },
    ]);
    const [gone] = (await fault({ claims: ADA, credentialConfigurationId: 'gone' })) ?? [];
    expect(gone?.path).to.equal('credentialConfigurationId');
    expect(gone?.message).to.include('there is no configuration gone');
    for (const id of ['card', 'other', 'badge']) await world.offers({ id, statusManagement: true });
    const [all] = (await fault({ claims: ADA })) ?? [];
    expect(all?.path).to.equal('claims');
    expect(all?.message).to.include('no credential configuration identifies');
  });

  it('restricts a client to its allowed configurations, and to the named one', async () => {
    const [card, other] = [await held(ADA), await held(ADA, ['other'])];
    const restricted = { allowedIssuanceConfigs: ['other'] };
    expect(await endOf(revoke({ claims: ADA, credentialConfigurationId: 'card' }, restricted))).to.equal('forbidden');
    expect((await revoke({ claims: ADA }, restricted)).revoked).to.equal(1);
    expect([await statusOf(card.session), await statusOf(other.session)]).to.deep.equal([[0], [1]]);
    expect((await revoke({ claims: ADA, credentialConfigurationId: 'other' })).revoked).to.equal(0);
    expect((await revoke({ claims: ADA, credentialConfigurationId: 'card' })).revoked).to.equal(1);
  });

  it('does not affect another tenant, which has a different fingerprint for the same subject', async () => {
    const one = await held(ADA);
    await world.addTenant('bravo' as typeof ACME);
    await world.offers({ id: 'card', statusManagement: true, subjectClaims: [['number']] }, 'bravo' as typeof ACME);
    expect((await revoke({ claims: ADA }, {}, 'bravo' as typeof ACME)).revoked).to.equal(0);
    expect(await statusOf(one.session)).to.deep.equal([0]);
    const mine = (await world.caller()).tenant;
    const theirs = (await world.caller('bravo' as typeof ACME)).tenant;
    const ways = [{ paths: [['number']], isFlat: false }];
    const { subjectFingerprints } = world;
    const all = await Promise.all([mine, theirs].map((tenant) => subjectFingerprints.ofDescribed(tenant, ADA, ways)));
    expect(all[0]).to.not.deep.equal(all[1]);
  });

  it('rejects claims that match more credentials than one subject could have', async () => {
    await held(ADA);
    const maintenance = { ...world.store.maintenance, countBatches: async () => MAX_BATCHES + 1 };
    sinon.stub(world.store, 'maintenance').get(() => maintenance);
    expect(await endOf(revoke({ claims: ADA }))).to.equal('conflict');
  });

  it('continues if the session issues concurrently, and revokes that credential too', async () => {
    await world.offers({ id: 'shared-card', ...SHARED_CARD });
    const { session, logIn } = await shared(['shared-card']);
    const [adas, bobs] = [await logIn(ADA), await logIn(BOB)];
    await adas.issue();
    world.clock.time += 1_000;
    const { store } = world;
    const commit = store.commit.bind(store);
    let isFirst = true;
    sinon.stub(store, 'commit').callsFake(async (tenantId, change: Change, now) => {
      if (change.statuses !== undefined && isFirst) {
        isFirst = false;
        await bobs.issue();
      }
      return commit(tenantId, change, now);
    });
    expect((await revoke({ claims: ADA })).revoked).to.equal(1);
    expect(isFirst).to.equal(false);
    expect(await statusOf(session)).to.deep.equal([1, 0]);
  });

  it('counts each credential once, for any number of simultaneous revocations', async () => {
    const [one, two] = [await held(ADA), await held(ADA, ['other'])];
    const calls = Array.from({ length: 12 }, () => revoke({ claims: ADA }));
    const jobs = Array.from({ length: 4 }, () => world.fulfilRevocations.execute(world.clock.now(), 5));
    const counts = (await Promise.all(calls)).map(({ revoked }) => revoked);
    await Promise.all(jobs);
    expect(counts.reduce((sum, count) => sum + count, 0)).to.be.at.most(2);
    expect([await statusOf(one.session), await statusOf(two.session)]).to.deep.equal([[1], [1]]);
  });

  it('does not execute the order of another caller with other configurations', async () => {
    const [one, two] = [await held(ADA), await held(ADA, ['other'])];
    const revoking = sinon.stub(world.subjectRevoker, 'revoke').rejects(new Error('gone'));
    await revoke({ claims: ADA }).catch(() => {});
    revoking.restore();
    const restricted = { allowedIssuanceConfigs: ['other'] };
    expect(await revoke({ claims: ADA }, restricted)).to.deep.equal({ revoked: 1, pending: 0 });
    expect([await statusOf(one.session), await statusOf(two.session)]).to.deep.equal([[0], [1]]);
  });

  it('finds credentials that were issued while an earlier order was completed', async () => {
    const one = await held(ADA);
    const fulfil = world.store.maintenance.fulfilOrder;
    let isFirst = true;
    const maintenance = {
      ...world.store.maintenance,
      fulfilOrder: async (order: RevocationOrder) => {
        if (isFirst) {
          isFirst = false;
          // Of a session that goes on, since somebody else came by its offer, too.
          const { batches = [] } = (await world.store.read(ACME).issued(order.sessionId)) ?? {};
          const issued = { ...batches[0], id: 'again', firstCounter: 7 } as IssuedBatch;
          const authorizedAt = new Date(world.clock.time + 1_000);
          const identifies = { fingerprint: order.fingerprint, batch: issued, endsAt: null, authorizedAt };
          const session = { id: order.sessionId, anytime: SESSION_STATUSES, counts: true } as const;
          const change = { issued, identifies, session };
          expect((await world.store.commit(ACME, change, world.clock.now())).done).to.equal(true);
          await world.store.maintenance.orderRevocations(ACME, [order.fingerprint], undefined, world.clock.now());
        }
        await fulfil(order);
      },
    };
    const replaced = sinon.stub(world.store, 'maintenance').get(() => maintenance);
    await revoke({ claims: ADA });
    replaced.restore();
    world.clock.time += 1_000;
    expect(await world.fulfilRevocations.execute(world.clock.now(), 5)).to.equal(1);
    expect(await statusOf(one.session)).to.deep.equal([1, 1]);
  });

  it('completes only after everything is revoked, also with concurrent issuances and revocations', async () => {
    await world.offers({ id: 'shared-card', ...SHARED_CARD });
    const { session, logIn } = await shared(['shared-card']);
    const [adas, bobs] = [await logIn(ADA), await logIn(BOB)];
    await adas.issue();
    world.clock.time += 1_000;
    await bobs.issue();
    const real = world.store.maintenance;
    let isFirst = true;
    const maintenance = {
      ...real,
      batchesOf: async (order: RevocationOrder) => {
        if (isFirst) {
          isFirst = false;
          // Between its two reads another one revokes what there is, and the session goes on to issue.
          await world.fulfilRevocations.execute(world.clock.now(), 5);
          world.clock.time += 1_000;
          await (await logIn(ADA)).issue();
        }
        return real.batchesOf(order);
      },
    };
    const replaced = sinon.stub(world.store, 'maintenance').get(() => maintenance);
    await revoke({ claims: ADA });
    replaced.restore();
    await revoke({ claims: ADA });
    expect(await statusOf(session)).to.deep.equal([1, 0, 1]);
  });

  it('is continued by the job after an interruption, once, and for each session separately', async () => {
    const [one, two] = [await held(ADA), await held(ADA, ['other'])];
    const revoking = sinon.stub(world.subjectRevoker, 'revoke').rejects(new Error('gone'));
    await endOf(revoke({ claims: ADA }).catch((error: Error) => expect(error.message).to.equal('gone')));
    revoking.restore();
    expect([await statusOf(one.session), await statusOf(two.session)]).to.deep.equal([[0], [0]]);
    const job = (limit: number) => world.fulfilRevocations.execute(world.clock.now(), limit);
    expect(await job(1)).to.equal(1);
    expect([...(await statusOf(one.session)), ...(await statusOf(two.session))].sort()).to.deep.equal([0, 1]);
    expect([await job(5), await job(5)]).to.deep.equal([1, 0]);
    expect([await statusOf(one.session), await statusOf(two.session)]).to.deep.equal([[1], [1]]);
  });

  it('continues with other sessions if one fails', async () => {
    const [one, two] = [await held(ADA), await held(ADA, ['other'])];
    sinon.stub(world.subjectRevoker, 'revoke').rejects(new Error('gone'));
    await revoke({ claims: ADA }).catch(() => {});
    sinon.restore();
    const original = world.subjectRevoker.revoke.bind(world.subjectRevoker);
    const failing = sinon.stub(world.subjectRevoker, 'revoke').callsFake((configured, order, by) => {
      if (order.sessionId === one.session) throw new Error('cannot');
      return original(configured, order, by);
    });
    const now = world.clock.now();
    expect(await world.fulfilRevocations.execute(now, 5)).to.equal(2);
    expect(await world.fulfilRevocations.execute(now, 5), 'it waits').to.equal(0);
    failing.restore();
    expect([await statusOf(one.session), await statusOf(two.session)]).to.deep.equal([[0], [1]]);
    expect(await world.fulfilRevocations.execute(new Date(now.getTime() + 300_000), 5)).to.equal(1);
    expect(await statusOf(one.session)).to.deep.equal([1]);
  });

  it('rejects an issuance without the claims that identify its subject', async () => {
    for (const number of [null, '', ['17'], { at: 17 }, 'x'.repeat(1_001)]) {
      const claims = { name: 'Ada', number };
      expect(await endOf(held(claims)), String(number)).to.not.equal('done');
    }
    expect(await endOf(held({ name: 'Ada' }))).to.not.equal('done');
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
