import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import { moveOn } from '../../../domain/oauth/authorization.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  addTenant,
  aGrant,
  anAuthorization,
  aSession,
  aUse,
  NOW,
  openOffer,
  REDEMPTION,
  seconds,
  UNUSED,
} from './builders.ts';

const nobody = 'nobody' as TenantId;

export function describeAuthorizations(open: () => Store): void {
  describe('an authorization', () => {
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

    it('is found with the tenant, and by this tenant only', async () => {
      const authorization = anAuthorization();
      const beats = store.beats(tenantId);
      expect(await beats.openAuthorization(authorization, [])).to.equal('opened');
      expect(await beats.findAuthorization(authorization.id)).to.deep.equal({
        head: await beats.head(),
        authorization,
      });
      expect(await beats.findAuthorization('none')).to.deep.equal({
        head: await beats.head(),
        authorization: undefined,
      });
      const other = await addTenant(store);
      expect((await store.beats(other).findAuthorization(authorization.id))?.authorization).to.equal(
        undefined,
      );
      expect(await store.beats(nobody).findAuthorization(authorization.id)).to.equal(undefined);
    });

    it('is opened with what it spends, or not at all', async () => {
      const beats = store.beats(tenantId);
      const [known, fresh] = [aUse(), aUse('client_jti')];
      await beats.remember([known]);
      const refused = anAuthorization();
      expect(await beats.openAuthorization(refused, [fresh, known])).to.equal('dpop_jti');
      expect((await beats.findAuthorization(refused.id))?.authorization).to.equal(undefined);
      expect(await beats.openAuthorization(anAuthorization(), [fresh])).to.equal('opened');
      expect(await beats.openAuthorization(anAuthorization(), [fresh])).to.equal('client_jti');
    });

    it('is opened by an active tenant only', async () => {
      const suspended = await addTenant(store, { status: 'suspended' });
      expect(await store.beats(suspended).openAuthorization(anAuthorization(), [aUse()])).to.equal(undefined);
      expect(await store.beats(nobody).openAuthorization(anAuthorization(), [])).to.equal(undefined);
    });

    it('moves on once from each version', async () => {
      const authorization = anAuthorization();
      const beats = store.beats(tenantId);
      await beats.openAuthorization(authorization, []);
      const next = moveOn(authorization, { stage: 'upstream', handles: { upstream: 'hash' } });
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => beats.advanceAuthorization(next, [])),
      );
      expect(answers.filter((answer) => answer === 'advanced')).to.have.length(1);
      expect(answers.filter((answer) => answer === 'stale')).to.have.length(19);
      expect((await beats.findAuthorization(authorization.id))?.authorization).to.deep.equal(next);
    });

    it('stays where it is when a value of the step was used before', async () => {
      const authorization = anAuthorization();
      const beats = store.beats(tenantId);
      await beats.openAuthorization(authorization, []);
      const known = aUse();
      await beats.remember([known]);
      const next = moveOn(authorization, { stage: 'upstream' });
      expect(await beats.advanceAuthorization(next, [known])).to.equal('dpop_jti');
      expect((await beats.findAuthorization(authorization.id))?.authorization?.version).to.equal(1);
    });

    it('ends with one code, however many ask', async () => {
      const { session } = await openOffer(store, tenantId);
      const authorization = anAuthorization();
      const beats = store.beats(tenantId);
      await beats.openAuthorization(authorization, []);
      const done = moveOn(authorization, { stage: 'done' });
      const codes = Array.from({ length: 20 }, () => codeFor(session));
      const granted = await Promise.all(codes.map((code) => beats.grantAuthorization(done, code)));
      expect(granted.filter(Boolean)).to.have.length(1);
      const found = await Promise.all(codes.map((code) => beats.findGrant(code.codeHash)));
      const [only] = found.flatMap((entry) => entry?.grant ?? []);
      expect(found.filter((entry) => entry?.grant !== undefined)).to.have.length(1);
      expect(only).to.deep.equal({ ...codes[granted.indexOf(true)], ...UNUSED });
    });

    it('brings a session of its own into being with the code', async () => {
      const authorization = anAuthorization();
      const beats = store.beats(tenantId);
      await beats.openAuthorization(authorization, []);
      const session = aSession(tenantId, { status: 'fetched' });
      const code = codeFor(session);
      const done = moveOn(authorization, { stage: 'done' });
      expect(await beats.grantAuthorization(done, code, session)).to.equal(true);
      expect(await beats.findSession(session.id)).to.deep.equal(session);
      expect(await beats.sessionEvents(session.id, 0, 10)).to.have.length(1);
      const other = aSession(tenantId);
      expect(await beats.grantAuthorization(done, codeFor(other), other), 'once').to.equal(false);
      expect(await beats.findSession(other.id)).to.equal(undefined);
    });

    it('gives no code for a session that failed, expired or never was', async () => {
      const beats = store.beats(tenantId);
      for (const status of ['failed', 'expired'] as const) {
        const { session } = await openOffer(store, tenantId, { session: { status } });
        const authorization = anAuthorization();
        await beats.openAuthorization(authorization, []);
        expect(await beats.grantAuthorization(moveOn(authorization, {}), codeFor(session))).to.equal(false);
        expect((await beats.findAuthorization(authorization.id))?.authorization?.version).to.equal(1);
      }
      const authorization = anAuthorization();
      await beats.openAuthorization(authorization, []);
      const code = codeFor(aSession(tenantId));
      expect(await beats.grantAuthorization(moveOn(authorization, {}), code)).to.equal(false);
    });

    it('gives a code that is redeemed although its session completed', async () => {
      const { session } = await openOffer(store, tenantId, { session: { status: 'completed' } });
      const authorization = anAuthorization();
      const beats = store.beats(tenantId);
      await beats.openAuthorization(authorization, []);
      const code = codeFor(session);
      await beats.grantAuthorization(moveOn(authorization, {}), code);
      expect(await beats.redeemGrant(code.codeHash, REDEMPTION, [], NOW), 'not by the short way').to.equal(
        undefined,
      );
      expect(await beats.consumeGrant(code.id, REDEMPTION, [], NOW)).to.equal('consumed');
      expect(await beats.consumeGrant(code.id, REDEMPTION, [], NOW)).to.equal('spent');
    });

    it('is forgotten when its time is over', async () => {
      const authorization = anAuthorization({ expiresAt: seconds(10) });
      const beats = store.beats(tenantId);
      await beats.openAuthorization(authorization, []);
      await store.chores.forgetExpired(seconds(9), 1000);
      expect((await beats.findAuthorization(authorization.id))?.authorization).to.not.equal(undefined);
      expect(await store.chores.forgetExpired(seconds(10), 1000)).to.be.greaterThan(0);
      expect((await beats.findAuthorization(authorization.id))?.authorization).to.equal(undefined);
    });
  });

  describe('a redeemed grant', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });
    const redeemed = async () => {
      const { session, grant } = await openOffer(store, tenantId);
      await store.beats(tenantId).consumeGrant(grant.id, REDEMPTION, [], NOW);
      return { session, grant };
    };

    it('knows its holder and lives as long as its tokens', async () => {
      const { grant } = await redeemed();
      const found = await store.beats(tenantId).findGrantById(grant.id);
      expect(found?.grant).to.deep.equal({
        ...grant,
        ...UNUSED,
        consumedAt: NOW,
        holder: REDEMPTION.holder,
        expiresAt: REDEMPTION.until,
      });
      expect((await store.beats(tenantId).findGrantById('none'))?.grant).to.equal(undefined);
      expect(await store.beats(nobody).findGrantById(grant.id)).to.equal(undefined);
    });

    it('is refreshed once per generation', async () => {
      const { grant } = await redeemed();
      const beats = store.beats(tenantId);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => beats.refreshGrant(grant.id, 0, [aUse()], NOW)),
      );
      expect(answers.filter((answer) => answer === 'refreshed')).to.have.length(1);
      expect((await beats.findGrantById(grant.id))?.grant?.generation).to.equal(1);
      expect(await beats.refreshGrant(grant.id, 1, [], NOW)).to.equal('refreshed');
    });

    it('is not refreshed by a replayed proof, after its end, before its redemption or once revoked', async () => {
      const beats = store.beats(tenantId);
      const { grant } = await redeemed();
      const known = aUse();
      await beats.remember([known]);
      expect(await beats.refreshGrant(grant.id, 0, [known], NOW)).to.equal('dpop_jti');
      expect(await beats.refreshGrant(grant.id, 0, [], REDEMPTION.until)).to.equal('stale');
      const unused = await openOffer(store, tenantId);
      expect(await beats.refreshGrant(unused.grant.id, 0, [], NOW)).to.equal('stale');
      await beats.revokeGrant(grant.id, seconds(1));
      expect(await beats.refreshGrant(grant.id, 0, [], NOW)).to.equal('stale');
    });

    it('counts no more once it is revoked', async () => {
      const { session, grant } = await redeemed();
      const beats = store.beats(tenantId);
      const before = await beats.claimCredentialRequest(session.publicId, [], grant.id);
      expect(before?.revoked).to.equal(false);
      await beats.revokeGrant(grant.id, seconds(1));
      await beats.revokeGrant(grant.id, seconds(2));
      expect((await beats.findGrantById(grant.id))?.grant?.revokedAt).to.deep.equal(seconds(1));
      expect((await beats.claimCredentialRequest(session.publicId, [], grant.id))?.revoked).to.equal(true);
      expect((await beats.claimCredentialRequest(session.publicId, []))?.revoked).to.equal(false);
      const head = await beats.head();
      const batch = {
        id: 'batch',
        sessionId: session.id,
        credentialConfigurationId: 'diploma',
        count: 1,
        statusListId: null,
        firstCounter: null,
        issuedAt: NOW,
      };
      const issuance = {
        sessionId: session.id,
        publicId: session.publicId,
        revision: head?.revision ?? 0,
        batch,
        bit: 1,
        completeMask: 3,
      };
      const use = aUse();
      expect(await beats.issueAtOnce({ ...issuance, grantId: grant.id, used: [use] }, NOW)).to.equal(
        undefined,
      );
      expect(await beats.remember([use]), 'nothing was spent').to.equal(true);
      expect(await beats.issueAtOnce({ ...issuance, used: [] }, NOW)).to.not.equal(undefined);
    });
  });

  describe('a user of a foreign authorization server', () => {
    it('is led to the own sessions, the newest first, and loses them with them', async () => {
      const store = open();
      const tenantId = await addTenant(store);
      const beats = store.beats(tenantId);
      const older = (await openOffer(store, tenantId, { session: { createdAt: NOW } })).session;
      const newer = (await openOffer(store, tenantId, { session: { createdAt: seconds(5) } })).session;
      await beats.linkSubject('hash', older.id);
      await beats.linkSubject('hash', newer.id);
      await beats.linkSubject('hash', newer.id);
      await beats.linkSubject('hash', 'gone' as never);
      expect((await beats.findBySubject('hash')).map(({ id }) => id)).to.deep.equal([newer.id, older.id]);
      expect(await beats.findBySubject('other')).to.deep.equal([]);
      expect(await store.beats(await addTenant(store)).findBySubject('hash')).to.deep.equal([]);
      await beats.removeSession(newer.id, 'system');
      expect((await beats.findBySubject('hash')).map(({ id }) => id)).to.deep.equal([older.id]);
    });
  });
}
