import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import { ISSUING_STATUSES, MAX_ISSUANCES } from '../../../domain/sessions/session.ts';
import type { SessionChange } from '../../../domain/sessions/session-change.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { aBatch, aDeferred, addList, addTenant, aSession, aUse, NOW, openOffer, REDEMPTION, seconds, UNUSED } from './builders.ts';
import { batchIssuance, credentialRevocation, grantRedemption, issuanceDeferral, stepsOf } from './steps.ts';

const unknownTenant = 'unknown-tenant' as TenantId;

export function describeWalletSteps(open: () => Store): void {
  describe('wallet steps', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });

    describe('a grant', () => {
      it('is found by its code with the tenant', async () => {
        const { grant } = await openOffer(store, tenantId, { grant: { txCodeHash: 'tx' } });
        const steps = stepsOf(store, tenantId);
        const head = await steps.state();
        expect(await steps.grantByCode(grant.codeHash)).to.deep.equal({ tenant: head, grant: { ...grant, ...UNUSED } });
        expect(await steps.grantByCode('none')).to.deep.equal({ tenant: head, grant: undefined });
        expect(await stepsOf(store, unknownTenant).grantByCode(grant.codeHash)).to.equal(undefined);
      });

      it('is consumed once', async () => {
        const { grant } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        expect(await steps.commit(grantRedemption(grant, REDEMPTION, [aUse()]), seconds(1))).to.include({ done: true });
        expect(await steps.commit(grantRedemption(grant, REDEMPTION, [aUse()]), seconds(2))).to.include({ done: false });
        expect(await steps.commit(grantRedemption(grant, REDEMPTION, []), seconds(2))).to.include({ done: false });
        expect((await steps.grantByCode(grant.codeHash))?.grant?.consumedAt).to.deep.equal(seconds(1));
      });

      it('can be consumed without a single-use value', async () => {
        const { grant } = await openOffer(store, tenantId);
        expect(await stepsOf(store, tenantId).commit(grantRedemption(grant, REDEMPTION, []))).to.include({ done: true });
      });

      it('is not consumed when it expired, its session ended or it does not exist', async () => {
        const steps = stepsOf(store, tenantId);
        const expiredOffer = await openOffer(store, tenantId, { grant: { expiresAt: seconds(10) } });
        expect(await steps.commit(grantRedemption(expiredOffer.grant, REDEMPTION, []), seconds(10))).to.include({ done: false });
        const offerOfExpiredSession = await openOffer(store, tenantId, { session: { expiresAt: seconds(10) } });
        expect(await steps.commit(grantRedemption(offerOfExpiredSession.grant, REDEMPTION, []), seconds(10))).to.include({ done: false });
        for (const status of ['completed', 'expired', 'failed'] as const) {
          const offerOfFinishedSession = await openOffer(store, tenantId, { session: { status } });
          expect(await steps.commit(grantRedemption(offerOfFinishedSession.grant, REDEMPTION, []))).to.include({ done: false });
        }
        const unknownGrant = { ...expiredOffer.grant, id: 'none' };
        expect(await steps.commit(grantRedemption(unknownGrant, REDEMPTION, []))).to.include({ done: false });
      });

      it('is not consumed by a replay, which changes nothing', async () => {
        const { grant } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        const [consumed, unconsumed, otherKind] = [aUse(), aUse(), aUse('c_nonce')];
        await steps.commit({ uses: [consumed] });
        expect(await steps.commit(grantRedemption(grant, REDEMPTION, [unconsumed, consumed, otherKind]))).to.include({
          done: false,
          part: 'uses',
          kind: 'dpop_jti',
        });
        expect(await steps.commit({ uses: [consumed] })).to.include({ done: false });
        expect(await steps.commit(grantRedemption(grant, REDEMPTION, [unconsumed, otherKind]))).to.include({ done: true });
        expect(await steps.commit({ uses: [unconsumed] })).to.include({ done: false });
      });

      it('is rejected for the client proof before the key proof when both were used', async () => {
        const { session, grant } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        for (let round = 0; round < 5; round++) {
          const uses = [aUse('c_nonce'), aUse('dpop_jti'), aUse('client_jti')];
          await steps.commit({ uses });
          const redemption = await steps.commit(grantRedemption(grant, REDEMPTION, uses));
          expect(redemption).to.include({ done: false, part: 'uses', kind: 'client_jti' });
          const stored = await steps.issuing(session.publicId, uses.slice(0, 2), grant.id);
          expect(stored?.used).to.equal('dpop_jti');
        }
      });

      it('is redeemed by its code once, in one step', async () => {
        const { grant } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        const consumedValue = aUse();
        const redemption = await steps.redeemGrant(grant.codeHash, REDEMPTION, [consumedValue], seconds(1));
        expect(redemption).to.deep.include({ tenant: await steps.state() });
        expect(redemption).to.have.nested.property('grant.id', grant.id);
        expect(await steps.commit({ uses: [consumedValue] }), 'the proof is recorded as used').to.include({ done: false });
        expect(await steps.redeemGrant(grant.codeHash, REDEMPTION, [aUse()], seconds(2))).to.equal(undefined);
        expect((await steps.grantByCode(grant.codeHash))?.grant?.consumedAt).to.deep.equal(seconds(1));
      });

      it('is redeemed by one of many callers', async () => {
        const { grant } = await openOffer(store, tenantId);
        const results = await Promise.all(
          Array.from({ length: 50 }, () => stepsOf(store, tenantId).redeemGrant(grant.codeHash, REDEMPTION, [aUse()], NOW)),
        );
        expect(results.filter((answer) => answer !== undefined)).to.have.length(1);
      });

      it('is not redeemed by a replay or when a further step is required, and nothing changes', async () => {
        const steps = stepsOf(store, tenantId);
        const [consumed, unconsumed] = [aUse(), aUse()];
        await steps.commit({ uses: [consumed] });
        const { grant } = await openOffer(store, tenantId);
        expect(await steps.redeemGrant(grant.codeHash, REDEMPTION, [unconsumed, consumed], NOW)).to.equal('dpop_jti');
        const coded = await openOffer(store, tenantId, { grant: { txCodeHash: 'hash' } });
        expect(await steps.redeemGrant(coded.grant.codeHash, REDEMPTION, [unconsumed], NOW)).to.equal(undefined);
        const expiredOffer = await openOffer(store, tenantId, { grant: { expiresAt: seconds(10) } });
        expect(await steps.redeemGrant(expiredOffer.grant.codeHash, REDEMPTION, [unconsumed], seconds(10))).to.equal(undefined);
        const offerOfFailedSession = await openOffer(store, tenantId, { session: { status: 'failed' } });
        expect(await steps.redeemGrant(offerOfFailedSession.grant.codeHash, REDEMPTION, [unconsumed], NOW)).to.equal(undefined);
        expect(await steps.redeemGrant('none', REDEMPTION, [unconsumed], NOW)).to.equal(undefined);
        expect(await steps.commit({ uses: [unconsumed] })).to.include({ done: true });
        expect((await steps.grantByCode(grant.codeHash))?.grant?.consumedAt).to.equal(null);
      });

      it('has a bounded number of attempts', async () => {
        const { grant } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        const readGrant = async () => (await steps.grantByCode(grant.codeHash))?.grant;
        for (let attempt = 1; attempt <= 3; attempt++) {
          expect(await steps.commit({ grant: { id: grant.id, act: 'attempt', attemptsBelow: 3 } })).to.include({ done: true });
          expect(await readGrant()).to.deep.include({ attempts: attempt, consumedAt: null });
        }
        expect(await steps.commit({ grant: { id: grant.id, act: 'attempt', attemptsBelow: 3 } })).to.include({ done: false });
        expect(await readGrant()).to.deep.include({ attempts: 3, consumedAt: null });
      });

      it('has no additional attempts for simultaneous callers', async () => {
        const { grant } = await openOffer(store, tenantId);
        const results = await Promise.all(
          Array.from({ length: 50 }, () => stepsOf(store, tenantId).commit({ grant: { id: grant.id, act: 'attempt', attemptsBelow: 5 } })),
        );
        expect(results.filter(({ done }) => done)).to.have.length(5);
      });

      it('has no attempt left once it is consumed', async () => {
        const { grant } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        await steps.commit(grantRedemption(grant, REDEMPTION, []));
        expect(await steps.commit({ grant: { id: grant.id, act: 'attempt', attemptsBelow: 5 } })).to.include({ done: false });
      });
    });

    describe('a single-use value', () => {
      it('is accepted once', async () => {
        const steps = stepsOf(store, tenantId);
        const value = aUse();
        expect(await steps.commit({ uses: [value] })).to.include({ done: true });
        expect(await steps.commit({ uses: [value] })).to.include({ done: false });
        expect(await steps.commit({ uses: [] })).to.include({ done: true });
      });

      it('of another kind is a different value', async () => {
        const steps = stepsOf(store, tenantId);
        const value = aUse('dpop_jti');
        expect(await steps.commit({ uses: [value, { ...value, kind: 'c_nonce' }] })).to.include({ done: true });
        expect(await steps.commit({ uses: [{ ...value, kind: 'c_nonce' }] })).to.include({ done: false });
      });

      it('is not stored together with a used value, in either order', async () => {
        const steps = stepsOf(store, tenantId);
        const [consumed, one, two] = [aUse(), aUse(), aUse()];
        await steps.commit({ uses: [consumed] });
        expect(await steps.commit({ uses: [one, consumed, two] })).to.include({ done: false });
        expect(await steps.commit({ uses: [consumed] })).to.include({ done: false });
        expect(await steps.commit({ uses: [two, one] })).to.include({ done: true });
      });

      it('is a replay when it occurs twice in one request', async () => {
        const steps = stepsOf(store, tenantId);
        const value = aUse();
        const { session, grant } = await openOffer(store, tenantId);
        const sameValues = [value, { ...value }];
        expect(await steps.commit({ uses: sameValues })).to.include({ done: false });
        expect(await steps.commit(grantRedemption(grant, REDEMPTION, sameValues))).to.include({
          done: false,
          part: 'uses',
          kind: 'dpop_jti',
        });
        const claim = await steps.claimCredentialRequest(session.publicId, sameValues);
        expect(claim).to.deep.include({ session, replayed: 'dpop_jti' });
        expect(await steps.commit({ uses: [value] })).to.include({ done: true });
      });
    });

    describe('a credential request', () => {
      it('consumes its values and reads the session', async () => {
        const { session } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        const [jti, nonce] = [aUse('dpop_jti'), aUse('c_nonce')];
        const head = await steps.state();
        expect(await steps.claimCredentialRequest(session.publicId, [jti, nonce])).to.deep.equal({ tenant: head, session, revoked: false });
        expect(await steps.commit({ uses: [jti] })).to.include({ done: false });
        expect(await steps.commit({ uses: [nonce] })).to.include({ done: false });
      });

      it('is consumed only while the session has not reached its issuance limit', async () => {
        const { session } = await openOffer(store, tenantId);
        const otherOffer = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        for (let i = 0; i < 3; i++) await steps.commit(batchIssuance(session.id, aBatch(session), 1, 3));
        for (let i = 0; i < 2; i++) await steps.commit(issuanceDeferral(aDeferred(session), 1));
        const revocation = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 3 } as const;
        await steps.commit(credentialRevocation([{ listId: 'none', index: 0, status: 1 }], revocation));
        const may = async (id: SessionId, expected: Partial<SessionChange>) => {
          const used = aUse();
          const change = { session: { id, running: ISSUING_STATUSES, ...expected }, uses: [used] };
          const { done } = await store.commit(tenantId, change, NOW);
          expect(await steps.commit({ uses: [used] })).to.include({ done: !done });
          return done;
        };
        expect(await may(session.id, { issuedBelow: 4, deferredBelow: 3, unbarred: 1 })).to.equal(true);
        expect(await may(session.id, { issuedBelow: 3 })).to.equal(false);
        expect(await may(session.id, { deferredBelow: 2 })).to.equal(false);
        expect(await may(session.id, { unbarred: 2 })).to.equal(false);
        expect(await may(otherOffer.session.id, { issuedBelow: 1, deferredBelow: 1, unbarred: 3 })).to.equal(true);
      });

      it('names the value that was replayed and changes nothing', async () => {
        const { session } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        const head = await steps.state();
        for (const kind of ['dpop_jti', 'c_nonce'] as const) {
          const consumed = aUse(kind);
          const unconsumed = [aUse('dpop_jti'), aUse('c_nonce')];
          await steps.commit({ uses: [consumed] });
          for (const used of [
            [...unconsumed, consumed],
            [consumed, ...unconsumed],
          ]) {
            expect(await steps.claimCredentialRequest(session.publicId, used)).to.deep.equal({
              tenant: head,
              session,
              revoked: false,
              replayed: kind,
            });
          }
          expect(await steps.commit({ uses: [consumed] })).to.include({ done: false });
          expect(await steps.commit({ uses: unconsumed })).to.include({ done: true });
        }
      });

      it('finds no session of an unknown address and nothing for an unknown tenant', async () => {
        const steps = stepsOf(store, tenantId);
        const head = await steps.state();
        const value = aUse();
        expect(await steps.claimCredentialRequest('none' as PublicId, [])).to.deep.equal({
          tenant: head,
          session: undefined,
          revoked: false,
        });
        const missing = 'not-yet-created' as TenantId;
        expect(await stepsOf(store, missing).claimCredentialRequest('none' as PublicId, [value])).to.equal(undefined);
        await addTenant(store, { id: missing });
        expect(await stepsOf(store, missing).commit({ uses: [value] })).to.include({ done: true });
      });
    });

    describe('an issuance', () => {
      it('sets its bit and completes the session when all bits are set', async () => {
        const { session } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        const [one, two] = [
          aBatch(session, { issuedAt: seconds(1) }),
          aBatch(session, { issuedAt: seconds(2), statusListId: null, firstCounter: null }),
        ];
        expect(await steps.commit(batchIssuance(session.id, one, 0b10, 0b11), seconds(1))).to.deep.equal({
          done: true,
          session: { status: 'active', version: 1, moved: false },
        });
        expect((await steps.session(session.id))?.session?.issuedMask).to.equal(0b10);
        expect(await steps.commit(batchIssuance(session.id, two, 0b01, 0b11), seconds(2))).to.deep.equal({
          done: true,
          session: { status: 'completed', version: 2, moved: true },
        });
        expect((await steps.session(session.id))?.session).to.include({ status: 'completed', issuedMask: 0b11 });
        expect((await steps.issued(session.id))?.batches).to.deep.equal([one, two]);
        expect(await steps.sessionEvents(session.id, 0, 10)).to.deep.equal([
          { sequence: 1, version: 1, status: 'active', at: NOW },
          { sequence: 2, version: 2, status: 'completed', at: seconds(2) },
        ]);
      });

      it('of the same credential again does not complete a session with missing credentials', async () => {
        const { session } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        await steps.commit(batchIssuance(session.id, aBatch(session), 1, 3));
        expect(await steps.commit(batchIssuance(session.id, aBatch(session), 1, 3))).to.deep.nested.include({
          'session.status': 'active',
          'session.moved': false,
        });
      });

      it('on a completed session is recorded and changes nothing else, with or without an annotation', async () => {
        const { session } = await openOffer(store, tenantId);
        const steps = stepsOf(store, tenantId);
        await steps.commit(batchIssuance(session.id, aBatch(session), 1, 1));
        expect(await steps.commit(batchIssuance(session.id, aBatch(session), 1, 1))).to.deep.equal({
          done: true,
          session: { status: 'completed', version: 2, moved: false },
        });
        await steps.recordOutcome({ ...session, version: 2 }, undefined, { deliveries: [] }, NOW);
        expect(await steps.commit(batchIssuance(session.id, aBatch(session), 1, 1))).to.deep.equal({
          done: true,
          session: { status: 'completed', version: 3, moved: false },
        });
        expect((await steps.issued(session.id))?.batches).to.have.length(3);
        expect(await steps.sessionEvents(session.id, 0, 10)).to.have.length(2);
      });

      it('is committed together with the consumed values, for an unchanged tenant', async () => {
        const steps = stepsOf(store, tenantId);
        const { session } = await openOffer(store, tenantId);
        const revision = (await steps.state())?.revision ?? -1;
        const [jti, nonce] = [aUse('dpop_jti'), aUse('c_nonce')];
        const issuance = (changes: object = {}) => ({
          sessionId: session.id,
          publicId: session.publicId,
          revision,
          used: [jti, nonce],
          batch: aBatch(session),
          bit: 1,
          completeMask: 3,
          ...changes,
        });
        expect(await steps.issueAtOnce(issuance({ revision: revision - 1 }), NOW)).to.equal(undefined);
        expect(await steps.issueAtOnce(issuance({ sessionId: 'gone' }), NOW)).to.equal(undefined);
        expect(await steps.issueAtOnce(issuance(), session.expiresAt)).to.equal(undefined);
        expect((await steps.issued(session.id))?.batches, 'no batch was stored').to.deep.equal([]);
        expect(await steps.issueAtOnce(issuance(), NOW)).to.deep.equal({ status: 'active', changed: false });
        const retry = issuance({ used: [aUse(), nonce], bit: 2 });
        expect(await steps.issueAtOnce(retry, NOW)).to.equal('c_nonce');
        expect((await steps.session(session.id))?.session?.issuedMask, 'the session is unchanged').to.equal(1);
        const second = issuance({ used: [aUse()], batch: aBatch(session), bit: 2 });
        expect(await steps.issueAtOnce(second, NOW)).to.deep.equal({ status: 'completed', changed: true });
        expect(await steps.commit({ uses: [jti] })).to.include({ done: false });
        expect((await steps.issued(session.id))?.batches).to.have.length(2);
      });

      it('is barred together with a status change that covers all issued credentials', async () => {
        const steps = stepsOf(store, tenantId);
        const { session } = await openOffer(store, tenantId);
        const { id: listId } = await addList(store, tenantId);
        const revoke = (issuedCount: number, mask: number, barred: boolean) =>
          steps.commit(
            credentialRevocation([{ listId, index: 7, status: barred ? 2 : 0 }], {
              by: 'system',
              sessionId: session.id,
              issuedCount,
              mask,
              barred,
            }),
          );
        const issue = (bit: number) => steps.commit(batchIssuance(session.id, aBatch(session), bit, 7));
        await issue(1);
        expect(await revoke(0, 1, true), 'a credential was issued in the meantime').to.include({ done: false });
        expect(await steps.statusEntries(listId, 0), 'no status changed').to.deep.equal([]);
        expect(await revoke(1, 1, true)).to.include({ done: true });
        expect(await steps.statusEntries(listId, 0)).to.deep.equal([{ index: 7, status: 2 }]);
        expect(await issue(1)).to.include({ done: false });
        const revision = (await steps.state())?.revision ?? -1;
        const { publicId } = session;
        const issuanceAtOnce = { sessionId: session.id, publicId, revision, batch: aBatch(session), completeMask: 7 };
        const value = aUse();
        expect(await steps.issueAtOnce({ ...issuanceAtOnce, used: [value], bit: 1 }, NOW)).to.equal(undefined);
        expect(await steps.commit({ uses: [value] }), 'and no value was consumed').to.include({ done: true });
        expect(await issue(2), 'another credential is not affected').to.include({ done: true });
        expect(await revoke(2, 1, false)).to.include({ done: true });
        expect(await issue(1)).to.include({ done: true });
      });

      it('is limited in number', async () => {
        const steps = stepsOf(store, tenantId);
        const { session } = await openOffer(store, tenantId);
        for (let i = 0; i < MAX_ISSUANCES; i++) {
          expect(await steps.commit(batchIssuance(session.id, aBatch(session), 1, 3))).to.include({ done: true });
        }
        expect(await steps.commit(batchIssuance(session.id, aBatch(session), 1, 3))).to.include({ done: false });
        expect((await steps.issued(session.id))?.batches).to.have.length(MAX_ISSUANCES);
      });

      it('is rejected when the session failed, expired or was removed', async () => {
        const steps = stepsOf(store, tenantId);
        for (const status of ['failed', 'expired'] as const) {
          const { session } = await openOffer(store, tenantId, { session: { status } });
          expect(await steps.commit(batchIssuance(session.id, aBatch(session), 1, 1))).to.include({ done: false });
          expect((await steps.issued(session.id))?.batches).to.deep.equal([]);
          expect((await steps.session(session.id))?.session).to.deep.equal(session);
        }
        const missingSession = aSession(tenantId, { id: 'gone' as SessionId });
        expect(await steps.commit(batchIssuance(missingSession.id, aBatch(missingSession), 1, 1))).to.include({ done: false });
        expect((await steps.issued(missingSession.id))?.batches).to.deep.equal([]);
      });
    });
  });
}
