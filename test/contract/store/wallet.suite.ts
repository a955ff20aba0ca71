import { expect } from 'chai';
import { MAX_ISSUANCES, type Store } from '../../../application/ports/store.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import {
  aBatch,
  aDeferred,
  addList,
  addTenant,
  aSession,
  aUse,
  NOW,
  openOffer,
  REDEMPTION,
  seconds,
  UNUSED,
} from './builders.ts';

const nobody = 'nobody' as TenantId;

export function describeWalletSteps(open: () => Store): void {
  describe('the steps of a wallet', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });

    describe('a grant', () => {
      it('is found by its code with the tenant', async () => {
        const { grant } = await openOffer(store, tenantId, { grant: { txCodeHash: 'tx' } });
        const beats = store.beats(tenantId);
        const head = await beats.head();
        expect(await beats.findGrant(grant.codeHash)).to.deep.equal({
          head,
          grant: { ...grant, ...UNUSED },
        });
        expect(await beats.findGrant('none')).to.deep.equal({ head, grant: undefined });
        expect(await store.beats(nobody).findGrant(grant.codeHash)).to.equal(undefined);
      });

      it('is consumed once', async () => {
        const { grant } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        expect(await beats.consumeGrant(grant.id, REDEMPTION, [aUse()], seconds(1))).to.equal('consumed');
        expect(await beats.consumeGrant(grant.id, REDEMPTION, [aUse()], seconds(2))).to.equal('spent');
        expect(await beats.consumeGrant(grant.id, REDEMPTION, [], seconds(2))).to.equal('spent');
        expect((await beats.findGrant(grant.codeHash))?.grant?.consumedAt).to.deep.equal(seconds(1));
      });

      it('can be consumed without a value to remember', async () => {
        const { grant } = await openOffer(store, tenantId);
        expect(await store.beats(tenantId).consumeGrant(grant.id, REDEMPTION, [], NOW)).to.equal('consumed');
      });

      it('is spent when it expired, its session ended or it never was', async () => {
        const beats = store.beats(tenantId);
        const late = await openOffer(store, tenantId, { grant: { expiresAt: seconds(10) } });
        expect(await beats.consumeGrant(late.grant.id, REDEMPTION, [], seconds(10))).to.equal('spent');
        const over = await openOffer(store, tenantId, { session: { expiresAt: seconds(10) } });
        expect(await beats.consumeGrant(over.grant.id, REDEMPTION, [], seconds(10))).to.equal('spent');
        for (const status of ['completed', 'expired', 'failed'] as const) {
          const ended = await openOffer(store, tenantId, { session: { status } });
          expect(await beats.consumeGrant(ended.grant.id, REDEMPTION, [], NOW)).to.equal('spent');
        }
        expect(await beats.consumeGrant('none', REDEMPTION, [], NOW)).to.equal('spent');
      });

      it('is not consumed by a replay, and the replay leaves nothing behind', async () => {
        const { grant } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        const [known, fresh, sibling] = [aUse(), aUse(), aUse('c_nonce')];
        await beats.remember([known]);
        expect(await beats.consumeGrant(grant.id, REDEMPTION, [fresh, known, sibling], NOW)).to.equal(
          'dpop_jti',
        );
        expect(await beats.remember([known])).to.equal(false);
        expect(await beats.consumeGrant(grant.id, REDEMPTION, [fresh, sibling], NOW)).to.equal('consumed');
        expect(await beats.remember([fresh])).to.equal(false);
      });

      it('is redeemed by its code once, in one step', async () => {
        const { grant } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        const use = aUse();
        const redeemed = await beats.redeemGrant(grant.codeHash, REDEMPTION, [use], seconds(1));
        expect(redeemed).to.deep.include({ head: await beats.head() });
        expect(redeemed).to.have.nested.property('grant.id', grant.id);
        expect(await beats.remember([use]), 'the proof is remembered').to.equal(false);
        expect(await beats.redeemGrant(grant.codeHash, REDEMPTION, [aUse()], seconds(2))).to.equal(undefined);
        expect((await beats.findGrant(grant.codeHash))?.grant?.consumedAt).to.deep.equal(seconds(1));
      });

      it('is redeemed by one of many callers', async () => {
        const { grant } = await openOffer(store, tenantId);
        const answers = await Promise.all(
          Array.from({ length: 50 }, () =>
            store.beats(tenantId).redeemGrant(grant.codeHash, REDEMPTION, [aUse()], NOW),
          ),
        );
        expect(answers.filter((answer) => answer !== undefined)).to.have.length(1);
      });

      it('is not redeemed by a replay, nor when a step more is needed, and nothing happens then', async () => {
        const beats = store.beats(tenantId);
        const [known, fresh] = [aUse(), aUse()];
        await beats.remember([known]);
        const { grant } = await openOffer(store, tenantId);
        expect(await beats.redeemGrant(grant.codeHash, REDEMPTION, [fresh, known], NOW)).to.equal('dpop_jti');
        const coded = await openOffer(store, tenantId, { grant: { txCodeHash: 'hash' } });
        expect(await beats.redeemGrant(coded.grant.codeHash, REDEMPTION, [fresh], NOW)).to.equal(undefined);
        const late = await openOffer(store, tenantId, { grant: { expiresAt: seconds(10) } });
        expect(await beats.redeemGrant(late.grant.codeHash, REDEMPTION, [fresh], seconds(10))).to.equal(
          undefined,
        );
        const ended = await openOffer(store, tenantId, { session: { status: 'failed' } });
        expect(await beats.redeemGrant(ended.grant.codeHash, REDEMPTION, [fresh], NOW)).to.equal(undefined);
        expect(await beats.redeemGrant('none', REDEMPTION, [fresh], NOW)).to.equal(undefined);
        expect(await beats.remember([fresh])).to.equal(true);
        expect((await beats.findGrant(grant.codeHash))?.grant?.consumedAt).to.equal(null);
      });

      it('has a bounded number of attempts', async () => {
        const { grant } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        const stored = async () => (await beats.findGrant(grant.codeHash))?.grant;
        for (let attempt = 1; attempt <= 3; attempt++) {
          expect(await beats.takeAttempt(grant.id, 3)).to.equal(true);
          expect(await stored()).to.deep.include({ attempts: attempt, consumedAt: null });
        }
        expect(await beats.takeAttempt(grant.id, 3)).to.equal(false);
        expect(await stored()).to.deep.include({ attempts: 3, consumedAt: null });
      });

      it('gives many callers at once no more attempts', async () => {
        const { grant } = await openOffer(store, tenantId);
        const taken = await Promise.all(
          Array.from({ length: 50 }, () => store.beats(tenantId).takeAttempt(grant.id, 5)),
        );
        expect(taken.filter(Boolean)).to.have.length(5);
      });

      it('has no attempt left once it is consumed', async () => {
        const { grant } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        await beats.consumeGrant(grant.id, REDEMPTION, [], NOW);
        expect(await beats.takeAttempt(grant.id, 5)).to.equal(false);
      });
    });

    describe('a value that may be used once', () => {
      it('is new once', async () => {
        const beats = store.beats(tenantId);
        const value = aUse();
        expect(await beats.remember([value])).to.equal(true);
        expect(await beats.remember([value])).to.equal(false);
        expect(await beats.remember([])).to.equal(true);
      });

      it('of another kind is another value', async () => {
        const beats = store.beats(tenantId);
        const value = aUse('dpop_jti');
        expect(await beats.remember([value, { ...value, kind: 'c_nonce' }])).to.equal(true);
        expect(await beats.remember([{ ...value, kind: 'c_nonce' }])).to.equal(false);
      });

      it('is not remembered beside one that is known, whichever comes first', async () => {
        const beats = store.beats(tenantId);
        const [known, one, two] = [aUse(), aUse(), aUse()];
        await beats.remember([known]);
        expect(await beats.remember([one, known, two])).to.equal(false);
        expect(await beats.remember([known])).to.equal(false);
        expect(await beats.remember([two, one])).to.equal(true);
      });

      it('is a replay of itself when it is given twice', async () => {
        const beats = store.beats(tenantId);
        const value = aUse();
        const { session, grant } = await openOffer(store, tenantId);
        const twice = [value, { ...value }];
        expect(await beats.remember(twice)).to.equal(false);
        expect(await beats.consumeGrant(grant.id, REDEMPTION, twice, NOW)).to.equal('dpop_jti');
        const claim = await beats.claimCredentialRequest(session.publicId, twice);
        expect(claim).to.deep.include({ session, replayed: 'dpop_jti' });
        expect(await beats.remember([value])).to.equal(true);
      });
    });

    describe('a credential request', () => {
      it('spends its values and reads the session', async () => {
        const { session } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        const [jti, nonce] = [aUse('dpop_jti'), aUse('c_nonce')];
        const head = await beats.head();
        expect(await beats.claimCredentialRequest(session.publicId, [jti, nonce])).to.deep.equal({
          head,
          session,
          use: { issued: 0, deferred: 0, barred: 0 },
          revoked: false,
        });
        expect(await beats.remember([jti])).to.equal(false);
        expect(await beats.remember([nonce])).to.equal(false);
      });

      it('is told what the session has used up', async () => {
        const { session } = await openOffer(store, tenantId);
        const other = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        for (let i = 0; i < 3; i++) await beats.recordIssuance(session.id, aBatch(session), 1, 3, NOW);
        for (let i = 0; i < 2; i++) await beats.openDeferred(aDeferred(session), 1);
        const bar = { by: 'system', sessionId: session.id, mask: 2, barred: true, issuedCount: 3 } as const;
        await beats.changeStatuses([{ listId: 'none', index: 0, status: 1 }], NOW, bar);
        const { use } = (await beats.claimCredentialRequest(session.publicId, [aUse()])) ?? {};
        expect(use).to.deep.equal({ issued: 3, deferred: 2, barred: 2 });
        const unused = await beats.claimCredentialRequest(other.session.publicId, [aUse()]);
        expect(unused?.use).to.deep.equal({ issued: 0, deferred: 0, barred: 0 });
      });

      it('names the value that was replayed and leaves nothing behind', async () => {
        const { session } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        const head = await beats.head();
        for (const kind of ['dpop_jti', 'c_nonce'] as const) {
          const known = aUse(kind);
          const fresh = [aUse('dpop_jti'), aUse('c_nonce')];
          await beats.remember([known]);
          for (const used of [
            [...fresh, known],
            [known, ...fresh],
          ]) {
            expect(await beats.claimCredentialRequest(session.publicId, used)).to.deep.equal({
              head,
              session,
              revoked: false,
              replayed: kind,
            });
          }
          expect(await beats.remember([known])).to.equal(false);
          expect(await beats.remember(fresh)).to.equal(true);
        }
      });

      it('finds no session of an unknown address and nothing at all of an unknown tenant', async () => {
        const beats = store.beats(tenantId);
        const head = await beats.head();
        const value = aUse();
        expect(await beats.claimCredentialRequest('none' as PublicId, [])).to.deep.equal({
          head,
          session: undefined,
          revoked: false,
        });
        const missing = 'nobody-yet' as TenantId;
        expect(await store.beats(missing).claimCredentialRequest('none' as PublicId, [value])).to.equal(
          undefined,
        );
        await addTenant(store, { id: missing });
        expect(await store.beats(missing).remember([value])).to.equal(true);
      });
    });

    describe('an issuance', () => {
      it('sets its bit and completes the session when all are set', async () => {
        const { session } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        const [one, two] = [
          aBatch(session, { issuedAt: seconds(1) }),
          aBatch(session, { issuedAt: seconds(2), statusListId: null, firstCounter: null }),
        ];
        expect(await beats.recordIssuance(session.id, one, 0b10, 0b11, seconds(1))).to.deep.equal({
          status: 'active',
          version: 1,
          changed: false,
        });
        expect((await beats.findSession(session.id))?.issuedMask).to.equal(0b10);
        expect(await beats.recordIssuance(session.id, two, 0b01, 0b11, seconds(2))).to.deep.equal({
          status: 'completed',
          version: 2,
          changed: true,
        });
        expect(await beats.findSession(session.id)).to.include({ status: 'completed', issuedMask: 0b11 });
        expect(await beats.issuedBatches(session.id)).to.deep.equal([one, two]);
        expect(await beats.sessionEvents(session.id, 0, 10)).to.deep.equal([
          { sequence: 1, version: 1, status: 'active', at: NOW },
          { sequence: 2, version: 2, status: 'completed', at: seconds(2) },
        ]);
      });

      it('of the same credential again does not complete what is missing', async () => {
        const { session } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        await beats.recordIssuance(session.id, aBatch(session), 1, 3, NOW);
        expect(await beats.recordIssuance(session.id, aBatch(session), 1, 3, NOW)).to.include({
          status: 'active',
          changed: false,
        });
      });

      it('on a completed session is recorded and changes nothing else, annotated or not', async () => {
        const { session } = await openOffer(store, tenantId);
        const beats = store.beats(tenantId);
        await beats.recordIssuance(session.id, aBatch(session), 1, 1, NOW);
        expect(await beats.recordIssuance(session.id, aBatch(session), 1, 1, NOW)).to.deep.equal({
          status: 'completed',
          version: 2,
          changed: false,
        });
        await beats.recordOutcome({ ...session, version: 2 }, undefined, { deliveries: [] }, NOW);
        expect(await beats.recordIssuance(session.id, aBatch(session), 1, 1, NOW)).to.deep.equal({
          status: 'completed',
          version: 3,
          changed: false,
        });
        expect(await beats.issuedBatches(session.id)).to.have.length(3);
        expect(await beats.sessionEvents(session.id, 0, 10)).to.have.length(2);
      });

      it('happens at once with what it spends, for a tenant that is as the caller saw it', async () => {
        const beats = store.beats(tenantId);
        const { session } = await openOffer(store, tenantId);
        const revision = (await beats.head())?.revision ?? -1;
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
        expect(await beats.issueAtOnce(issuance({ revision: revision - 1 }), NOW)).to.equal(undefined);
        expect(await beats.issueAtOnce(issuance({ sessionId: 'gone' }), NOW)).to.equal(undefined);
        expect(await beats.issueAtOnce(issuance(), session.expiresAt)).to.equal(undefined);
        expect(await beats.issuedBatches(session.id), 'nothing happened').to.deep.equal([]);
        expect(await beats.issueAtOnce(issuance(), NOW)).to.deep.equal({ status: 'active', changed: false });
        const again = issuance({ used: [aUse(), nonce], bit: 2 });
        expect(await beats.issueAtOnce(again, NOW)).to.equal('c_nonce');
        expect((await beats.findSession(session.id))?.issuedMask, 'nothing happened').to.equal(1);
        const second = issuance({ used: [aUse()], batch: aBatch(session), bit: 2 });
        expect(await beats.issueAtOnce(second, NOW)).to.deep.equal({ status: 'completed', changed: true });
        expect(await beats.remember([jti])).to.equal(false);
        expect(await beats.issuedBatches(session.id)).to.have.length(2);
      });

      it('is not prepared from memory again after a refusal', async () => {
        const beats = store.beats(tenantId);
        const revision = (await beats.head())?.revision ?? -1;
        const used = [aUse('c_nonce')];
        await beats.remember(used);
        for (const changes of [{ used }, { revision: revision - 1 }]) {
          const { session } = await openOffer(store, tenantId);
          const { id: sessionId, publicId } = session;
          const issuance = { sessionId, publicId, revision, used: [], bit: 1, completeMask: 3 };
          await beats.issueAtOnce({ ...issuance, batch: aBatch(session), ...changes }, NOW);
          expect(beats.recallSession(publicId)).to.equal(undefined);
        }
      });

      it('is barred with a change of statuses that knows all that was issued', async () => {
        const beats = store.beats(tenantId);
        const { session } = await openOffer(store, tenantId);
        const { id: listId } = await addList(store, tenantId);
        const revoke = (issuedCount: number, mask: number, barred: boolean) =>
          beats.changeStatuses([{ listId, index: 7, status: barred ? 1 : 0 }], NOW, {
            by: 'system',
            sessionId: session.id,
            issuedCount,
            mask,
            barred,
          });
        const issue = (bit: number) => beats.recordIssuance(session.id, aBatch(session), bit, 7, NOW);
        await issue(1);
        expect(await revoke(0, 1, true), 'something was issued meanwhile').to.equal(false);
        expect(await beats.statusEntries(listId, 0), 'nothing changed').to.deep.equal([]);
        expect(await revoke(1, 1, true)).to.equal(true);
        expect(await beats.statusEntries(listId, 0)).to.deep.equal([{ index: 7, status: 1 }]);
        expect(await issue(1)).to.equal(undefined);
        const revision = (await beats.head())?.revision ?? -1;
        const { publicId } = session;
        const atOnce = { sessionId: session.id, publicId, revision, batch: aBatch(session), completeMask: 7 };
        const value = aUse();
        expect(await beats.issueAtOnce({ ...atOnce, used: [value], bit: 1 }, NOW)).to.equal(undefined);
        expect(await beats.remember([value]), 'and spends nothing').to.equal(true);
        expect(await issue(2), 'another credential is not concerned').not.to.equal(undefined);
        expect(await revoke(2, 1, false)).to.equal(true);
        expect(await issue(1)).not.to.equal(undefined);
      });

      it('is bounded in number', async () => {
        const beats = store.beats(tenantId);
        const { session } = await openOffer(store, tenantId);
        for (let i = 0; i < MAX_ISSUANCES; i++) {
          expect(await beats.recordIssuance(session.id, aBatch(session), 1, 3, NOW)).not.to.equal(undefined);
        }
        expect(await beats.recordIssuance(session.id, aBatch(session), 1, 3, NOW)).to.equal(undefined);
        expect(await beats.issuedBatches(session.id)).to.have.length(MAX_ISSUANCES);
      });

      it('is refused when the session failed, expired or is gone', async () => {
        const beats = store.beats(tenantId);
        for (const status of ['failed', 'expired'] as const) {
          const { session } = await openOffer(store, tenantId, { session: { status } });
          expect(await beats.recordIssuance(session.id, aBatch(session), 1, 1, NOW)).to.equal(undefined);
          expect(await beats.issuedBatches(session.id)).to.deep.equal([]);
          expect(await beats.findSession(session.id)).to.deep.equal(session);
        }
        const gone = aSession(tenantId, { id: 'gone' as SessionId });
        expect(await beats.recordIssuance(gone.id, aBatch(gone), 1, 1, NOW)).to.equal(undefined);
        expect(await beats.issuedBatches(gone.id)).to.deep.equal([]);
      });
    });
  });
}
