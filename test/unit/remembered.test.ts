import { expect } from 'chai';
import sinon from 'sinon';
import { setCacheMemory } from '../../application/tenant-cache/cache-memory.ts';
import { SessionCache } from '../../application/tenant-cache/session-cache.ts';
import { sizeOf } from '../../application/tenant-cache/size-of.ts';
import type { NewGrant } from '../../domain/oauth/grant.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';

const ACME = 'acme' as TenantId;
const OTHER = 'other' as TenantId;
const NOW = new Date('2026-06-01T12:00:00Z');
const MEBIBYTE = 1024 * 1024;

function aSession(name: string, offer: object = {}): Session {
  return {
    tenantId: ACME,
    id: `id of ${name}` as SessionId,
    publicId: name as PublicId,
    kind: 'issuance',
    status: 'active',
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
    expiresAt: NOW,
    configurationIds: ['card'],
    useDcApi: false,
    request: { kind: 'issuance', offerRequest: {}, offer, offerUrl: '', credentialClaims: {} } as IssuanceRequest,
    outcome: null,
    issuedMask: 0,
    claimedAt: null,
  };
}

const GRANT: NewGrant = {
  id: 'id of grant',
  kind: 'pre_authorized_code',
  server: 'built-in',
  authorization: null,
  sessionId: 'session' as SessionId,
  publicId: 'public' as PublicId,
  codeHash: 'hash',
  txCodeHash: null,
  credentialConfigurationIds: ['card'],
  expiresAt: NOW,
};

describe('SessionCache', () => {
  let remembered: SessionCache;

  beforeEach(() => {
    // Services that ran in this process had less.
    setCacheMemory(472);
    remembered = new SessionCache();
  });
  afterEach(() => sinon.restore());

  const find = (name: string, tenantId = ACME) => remembered.session(tenantId, name as PublicId);

  it('finds a session by its public id, only for its tenant', () => {
    const session = aSession('one');
    remembered.setSession(session);
    expect([find('one'), find('one', OTHER), find('two')]).to.deep.equal([session, undefined, undefined]);
  });

  it('removes a session that has ended', () => {
    for (const [number, status] of (['completed', 'failed', 'expired'] as const).entries()) {
      remembered.setSession(aSession(`${number}`));
      remembered.updateStatus(ACME, `id of ${number}` as SessionId, status, 2);
      expect(find(`${number}`), status).to.equal(undefined);
    }
  });

  it('returns the source of a session while it is open, and once after it ended', () => {
    const [open, ended] = [aSession('open', { a: 1 }), aSession('ended', { b: 1 })];
    for (const session of [open, ended]) remembered.setSession(session);
    // What becomes known of its result later, such as a delivery, changes nothing.
    for (let times = 0; times < 2; times++) remembered.endSession(ACME, ended.id);
    remembered.endSession(ACME, 'id of nothing' as SessionId);
    const requests = (session: Session) => [0, 1].map(() => remembered.request(ACME, session.id));
    expect(remembered.request(OTHER, ended.id)).to.equal(undefined);
    expect(requests(open)).to.deep.equal([open.request, open.request]);
    expect(requests(ended)).to.deep.equal([ended.request, undefined]);
    expect(find('ended')).to.equal(undefined);
  });

  it('returns the sources of the last ended sessions, up to a limit', () => {
    const names = Array.from({ length: 100 }, (_, index) => `${index}`);
    for (const name of names) {
      remembered.setSession(aSession(name));
      remembered.updateStatus(ACME, `id of ${name}` as SessionId, 'completed', 2);
    }
    const told = names.filter((name) => remembered.request(ACME, `id of ${name}` as SessionId) !== undefined);
    expect(told).to.deep.equal(names.slice(-64));
  });

  it('updates a session, and ignores unknown ones', () => {
    remembered.setSession(aSession('one'));
    remembered.updateStatus(ACME, 'id of one' as SessionId, 'fetched', 2);
    remembered.updateStatus(OTHER, 'id of one' as SessionId, 'failed', 3);
    remembered.updateStatus(ACME, 'id of two' as SessionId, 'fetched', 2);
    expect(find('one')).to.deep.include({ status: 'fetched', version: 2 });
    expect(find('two')).to.equal(undefined);
  });

  it('removes a session of this tenant', () => {
    remembered.setSession(aSession('one'));
    remembered.forgetSession(OTHER, 'id of one' as SessionId);
    expect(find('one')).not.to.equal(undefined);
    remembered.forgetSession(ACME, 'id of one' as SessionId);
    expect(find('one')).to.equal(undefined);
    remembered.updateStatus(ACME, 'id of one' as SessionId, 'fetched', 2);
    expect(find('one'), 'and moves nothing of it').to.equal(undefined);
  });

  it('caches a new grant by the hash of its code', () => {
    remembered.setGrant(ACME, GRANT);
    const fresh = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
    expect(remembered.grant(ACME, 'hash')).to.deep.equal({ ...GRANT, ...fresh });
    expect(remembered.grant(OTHER, 'hash')).to.equal(undefined);
    remembered.forgetGrant(OTHER, GRANT.id);
    expect(remembered.grant(ACME, 'hash')).not.to.equal(undefined);
    remembered.forgetGrant(ACME, GRANT.id);
    expect(remembered.grant(ACME, 'hash')).to.equal(undefined);
  });

  it('contains no session that ended and was removed', () => {
    const session = aSession('one');
    remembered.setSession(session);
    remembered.endSession(ACME, session.id);
    remembered.forgetSession(ACME, session.id);
    expect(remembered.request(ACME, session.id)).to.equal(undefined);
  });

  it('distinguishes a session from a grant of the same name', () => {
    remembered.setGrant(ACME, GRANT);
    remembered.setSession(aSession('one'));
    expect([find('hash'), remembered.grant(ACME, 'one')]).to.deep.equal([undefined, undefined]);
  });

  it('is limited by bytes, not by number, and keeps the newest sessions', () => {
    const large = { text: 'x'.repeat(MEBIBYTE) };
    const names = Array.from({ length: 40 }, (_, index) => `session ${index}`);
    for (const name of names) remembered.setSession(aSession(name, large));
    const kept = names.filter((name) => find(name) !== undefined);
    expect(kept.length).to.be.within(14, 16);
    expect(kept).to.deep.equal(names.slice(-kept.length));
    const bytes = kept.reduce((sum, name) => sum + sizeOf(find(name)), 0);
    expect(bytes).to.be.at.most(16 * MEBIBYTE);
  });

  it('does not cache a value that is larger than its limit', () => {
    remembered.setSession(aSession('small'));
    remembered.setSession(aSession('large', { text: 'x'.repeat(17 * MEBIBYTE) }));
    remembered.updateStatus(ACME, 'id of large' as SessionId, 'fetched', 2);
    expect(find('large')).to.equal(undefined);
    expect(find('small')).not.to.equal(undefined);
  });

  it('removes entries after five minutes', () => {
    const start = performance.now();
    const now = sinon.stub(performance, 'now').returns(start);
    remembered.setSession(aSession('one'));
    remembered.setGrant(ACME, GRANT);
    now.returns(start + 5 * 60_000 - 100);
    expect([find('one'), remembered.grant(ACME, 'hash')]).not.to.include(undefined);
    now.returns(start + 5 * 60_000 + 100);
    expect([find('one'), remembered.grant(ACME, 'hash')]).to.deep.equal([undefined, undefined]);
  });
});
