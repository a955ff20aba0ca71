import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import { advance } from '../../../domain/oauth/authorization.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { addTenant, aGrant, anAuthorization, aSession, aUse, NOW, openOffer, REDEMPTION, seconds, UNUSED } from './builders.ts';
import { authorizationGrant, grantRedemption, sessionRemoval, stepsOf } from './steps.ts';

const unknownTenant = 'unknown-tenant' as TenantId;

export function describeAuthorizations(open: () => Store): void {
  describe('an authorization session', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const codeFor = (session: ReturnType<typeof aSession>) =>
      aGrant(session, {
        kind: 'authorization_code',
        authorization: { holder: { clientId: 'w' }, byDetails: true, codeChallenge: 'c', redirectUri: 'r' },
      });

    it('is found with its tenant, and only by this tenant', async () => {
      const authorization = anAuthorization();
      const steps = stepsOf(store, tenantId);
      expect(await steps.commit({ serving: true, opens: { authorization }, uses: [] })).to.include({ done: true });
      expect(await steps.authorization(authorization.id)).to.deep.equal({ tenant: await steps.state(), authorization });
      expect(await steps.authorization('none')).to.deep.equal({ tenant: await steps.state(), authorization: undefined });
      const otherTenant = await addTenant(store);
      expect((await stepsOf(store, otherTenant).authorization(authorization.id))?.authorization).to.equal(undefined);
      expect(await stepsOf(store, unknownTenant).authorization(authorization.id)).to.equal(undefined);
    });

    it('is opened together with the values that it consumes, or not at all', async () => {
      const steps = stepsOf(store, tenantId);
      const [consumed, unconsumed] = [aUse(), aUse('client_jti')];
      await steps.commit({ uses: [consumed] });
      const rejected = anAuthorization();
      expect(await steps.commit({ serving: true, opens: { authorization: rejected }, uses: [unconsumed, consumed] })).to.include({
        done: false,
        part: 'uses',
        kind: 'dpop_jti',
      });
      expect((await steps.authorization(rejected.id))?.authorization).to.equal(undefined);
      expect(await steps.commit({ serving: true, opens: { authorization: anAuthorization() }, uses: [unconsumed] })).to.include({
        done: true,
      });
      expect(await steps.commit({ serving: true, opens: { authorization: anAuthorization() }, uses: [unconsumed] })).to.include({
        done: false,
        part: 'uses',
        kind: 'client_jti',
      });
    });

    it('is opened only for an active tenant', async () => {
      const suspendedTenant = await addTenant(store, { status: 'suspended' });
      expect(
        await stepsOf(store, suspendedTenant).commit({ serving: true, opens: { authorization: anAuthorization() }, uses: [aUse()] }),
      ).to.include({ done: false });
      expect(
        await stepsOf(store, unknownTenant).commit({ serving: true, opens: { authorization: anAuthorization() }, uses: [] }),
      ).to.include({ done: false });
    });

    it('advances once from each version', async () => {
      const authorization = anAuthorization();
      const steps = stepsOf(store, tenantId);
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      const next = advance(authorization, { stage: 'upstream', handles: { upstream: 'hash' } });
      const results = await Promise.all(Array.from({ length: 20 }, () => steps.commit({ authorization: next, uses: [] })));
      expect(results.filter(({ done }) => done)).to.have.length(1);
      expect(results.filter(({ done }) => !done)).to.have.length(19);
      expect((await steps.authorization(authorization.id))?.authorization).to.deep.equal(next);
    });

    it('does not advance when a value of the step was used before', async () => {
      const authorization = anAuthorization();
      const steps = stepsOf(store, tenantId);
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      const consumed = aUse();
      await steps.commit({ uses: [consumed] });
      const next = advance(authorization, { stage: 'upstream' });
      expect(await steps.commit({ authorization: next, uses: [consumed] })).to.include({ done: false, part: 'uses', kind: 'dpop_jti' });
      expect((await steps.authorization(authorization.id))?.authorization?.version).to.equal(1);
    });

    it('ends with one code for any number of requests', async () => {
      const { session } = await openOffer(store, tenantId);
      const authorization = anAuthorization();
      const steps = stepsOf(store, tenantId);
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      const finished = advance(authorization, { stage: 'done' });
      const codes = Array.from({ length: 20 }, () => codeFor(session));
      const results = await Promise.all(codes.map((code) => steps.commit(authorizationGrant(finished, code))));
      expect(results.filter(({ done }) => done)).to.have.length(1);
      const entries = await Promise.all(codes.map((code) => steps.grantByCode(code.codeHash)));
      const [grant] = entries.flatMap((entry) => entry?.grant ?? []);
      expect(entries.filter((entry) => entry?.grant !== undefined)).to.have.length(1);
      expect(grant).to.deep.equal({ ...codes[results.findIndex(({ done }) => done)], ...UNUSED });
    });

    it('creates a session with the code', async () => {
      const authorization = anAuthorization();
      const steps = stepsOf(store, tenantId);
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      const session = aSession(tenantId, { status: 'fetched' });
      const code = codeFor(session);
      const finished = advance(authorization, { stage: 'done' });
      expect(await steps.commit(authorizationGrant(finished, code, session))).to.include({ done: true });
      expect((await steps.session(session.id))?.session).to.deep.equal(session);
      expect(await steps.sessionEvents(session.id, 0, 10)).to.have.length(1);
      const otherSession = aSession(tenantId);
      expect(await steps.commit(authorizationGrant(finished, codeFor(otherSession), otherSession)), 'a second time').to.include({
        done: false,
      });
      expect((await steps.session(otherSession.id))?.session).to.equal(undefined);
    });

    it('issues no code for a failed, expired or unknown session', async () => {
      const steps = stepsOf(store, tenantId);
      for (const status of ['failed', 'expired'] as const) {
        const { session } = await openOffer(store, tenantId, { session: { status } });
        const authorization = anAuthorization();
        await steps.commit({ serving: true, opens: { authorization }, uses: [] });
        expect(await steps.commit(authorizationGrant(advance(authorization, {}), codeFor(session)))).to.include({ done: false });
        expect((await steps.authorization(authorization.id))?.authorization?.version).to.equal(1);
      }
      const authorization = anAuthorization();
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      const code = codeFor(aSession(tenantId));
      expect(await steps.commit(authorizationGrant(advance(authorization, {}), code))).to.include({ done: false });
    });

    it('issues a code that is redeemable after its session completed', async () => {
      const { session } = await openOffer(store, tenantId, { session: { status: 'completed' } });
      const authorization = anAuthorization();
      const steps = stepsOf(store, tenantId);
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      const code = codeFor(session);
      await steps.commit(authorizationGrant(advance(authorization, {}), code));
      expect(await steps.redeemGrant(code.codeHash, REDEMPTION, [], NOW), 'redeemGrant does not redeem it').to.equal(undefined);
      expect(await steps.commit(grantRedemption(code, REDEMPTION, []))).to.include({ done: true });
      expect(await steps.commit(grantRedemption(code, REDEMPTION, []))).to.include({ done: false });
    });

    it('is removed after its expiry', async () => {
      const authorization = anAuthorization({ expiresAt: seconds(10) });
      const steps = stepsOf(store, tenantId);
      await steps.commit({ serving: true, opens: { authorization }, uses: [] });
      await store.maintenance.forgetExpired(seconds(9), 1000);
      expect((await steps.authorization(authorization.id))?.authorization).to.not.equal(undefined);
      expect(await store.maintenance.forgetExpired(seconds(10), 1000)).to.be.greaterThan(0);
      expect((await steps.authorization(authorization.id))?.authorization).to.equal(undefined);
    });
  });

  describe('a redeemed grant', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const redeem = async () => {
      const { session, grant } = await openOffer(store, tenantId);
      await stepsOf(store, tenantId).commit(grantRedemption(grant, REDEMPTION, []));
      return { session, grant };
    };

    it('contains its holder and expires with its tokens', async () => {
      const { grant } = await redeem();
      const stored = await stepsOf(store, tenantId).grant(grant.id);
      expect(stored?.grant).to.deep.equal({ ...grant, ...UNUSED, consumedAt: NOW, holder: REDEMPTION.holder, expiresAt: REDEMPTION.until });
      expect((await stepsOf(store, tenantId).grant('none'))?.grant).to.equal(undefined);
      expect(await stepsOf(store, unknownTenant).grant(grant.id)).to.equal(undefined);
    });

    it('is refreshed once per generation', async () => {
      const { grant } = await redeem();
      const steps = stepsOf(store, tenantId);
      const results = await Promise.all(
        Array.from({ length: 20 }, () => steps.commit({ grant: { id: grant.id, act: 'refresh', generation: 0 }, uses: [aUse()] })),
      );
      expect(results.filter(({ done }) => done)).to.have.length(1);
      expect((await steps.grant(grant.id))?.grant?.generation).to.equal(1);
      expect(await steps.commit({ grant: { id: grant.id, act: 'refresh', generation: 1 }, uses: [] })).to.include({ done: true });
    });

    it('is not refreshed by a replayed proof, after its expiry, before its redemption or after its revocation', async () => {
      const steps = stepsOf(store, tenantId);
      const { grant } = await redeem();
      const consumed = aUse();
      await steps.commit({ uses: [consumed] });
      expect(await steps.commit({ grant: { id: grant.id, act: 'refresh', generation: 0 }, uses: [consumed] })).to.include({
        done: false,
        part: 'uses',
        kind: 'dpop_jti',
      });
      expect(await steps.commit({ grant: { id: grant.id, act: 'refresh', generation: 0 }, uses: [] }, REDEMPTION.until)).to.include({
        done: false,
      });
      const unusedOffer = await openOffer(store, tenantId);
      expect(await steps.commit({ grant: { id: unusedOffer.grant.id, act: 'refresh', generation: 0 }, uses: [] })).to.include({
        done: false,
      });
      await steps.commit({ grant: { id: grant.id, act: 'revoke' } }, seconds(1));
      expect(await steps.commit({ grant: { id: grant.id, act: 'refresh', generation: 0 }, uses: [] })).to.include({ done: false });
    });

    it('is not counted after its revocation', async () => {
      const { session, grant } = await redeem();
      const steps = stepsOf(store, tenantId);
      const before = await steps.claimCredentialRequest(session.publicId, [], grant.id);
      expect(before?.revoked).to.equal(false);
      await steps.commit({ grant: { id: grant.id, act: 'revoke' } }, seconds(1));
      await steps.commit({ grant: { id: grant.id, act: 'revoke' } }, seconds(2));
      expect((await steps.grant(grant.id))?.grant?.revokedAt).to.deep.equal(seconds(1));
      expect((await steps.claimCredentialRequest(session.publicId, [], grant.id))?.revoked).to.equal(true);
      expect((await steps.claimCredentialRequest(session.publicId, []))?.revoked).to.equal(false);
      const head = await steps.state();
      const batch = {
        id: 'batch',
        sessionId: session.id,
        credentialConfigurationId: 'diploma',
        count: 1,
        statusListId: null,
        firstCounter: null,
        issuedAt: NOW,
      };
      const issuance = { sessionId: session.id, publicId: session.publicId, revision: head?.revision ?? 0, batch, bit: 1, completeMask: 3 };
      const consumedValue = aUse();
      expect(await steps.issueAtOnce({ ...issuance, grantId: grant.id, used: [consumedValue] }, NOW)).to.equal(undefined);
      expect(await steps.commit({ uses: [consumedValue] }), 'no value was consumed').to.include({ done: true });
      expect(await steps.issueAtOnce({ ...issuance, used: [] }, NOW)).to.not.equal(undefined);
    });
  });

  describe('a user of an external authorization server', () => {
    it('is linked to the sessions of the same user, the newest first, and unlinked when they are removed', async () => {
      const store = open();
      const tenantId = await addTenant(store);
      const steps = stepsOf(store, tenantId);
      const olderSession = (await openOffer(store, tenantId, { session: { createdAt: NOW } })).session;
      const newerSession = (await openOffer(store, tenantId, { session: { createdAt: seconds(5) } })).session;
      await steps.commit({ subject: { hash: 'hash', sessionId: olderSession.id } });
      await steps.commit({ subject: { hash: 'hash', sessionId: newerSession.id } });
      await steps.commit({ subject: { hash: 'hash', sessionId: newerSession.id } });
      await steps.commit({ subject: { hash: 'hash', sessionId: 'gone' as never } });
      expect((await steps.sessionsOfSubject('hash')).map(({ id }) => id)).to.deep.equal([newerSession.id, olderSession.id]);
      expect(await steps.sessionsOfSubject('other')).to.deep.equal([]);
      expect(await stepsOf(store, await addTenant(store)).sessionsOfSubject('hash')).to.deep.equal([]);
      await steps.commit(sessionRemoval(newerSession.id, 'system'));
      expect((await steps.sessionsOfSubject('hash')).map(({ id }) => id)).to.deep.equal([olderSession.id]);
    });
  });
}
