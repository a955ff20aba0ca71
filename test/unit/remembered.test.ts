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
  let cache: SessionCache;

  beforeEach(() => {
    // Other tests in this process may have set a smaller cache.
    setCacheMemory(472);
    cache = new SessionCache();
  });
  afterEach(() => sinon.restore());

  const findSession = (name: string, tenantId = ACME) => cache.session(tenantId, name as PublicId);

  it('finds a session by its public id, only for its tenant', () => {
    const session = aSession('one');
    cache.setSession(session);
    expect([findSession('one'), findSession('one', OTHER), findSession('two')]).to.deep.equal([session, undefined, undefined]);
  });

  it('removes a session that has ended', () => {
    for (const [number, status] of (['completed', 'failed', 'expired'] as const).entries()) {
      cache.setSession(aSession(`${number}`));
      cache.updateStatus(ACME, `id of ${number}` as SessionId, status, 2);
      expect(findSession(`${number}`), status).to.equal(undefined);
    }
  });

  it('returns the source of a session while it is open, and once after it ended', () => {
    const [open, endedSession] = [aSession('open', { a: 1 }), aSession('ended', { b: 1 })];
    for (const session of [open, endedSession]) cache.setSession(session);
    // Later changes of the outcome, such as a delivery, do not evict it.
    for (let timestamps = 0; timestamps < 2; timestamps++) cache.endSession(ACME, endedSession.id);
    cache.endSession(ACME, 'id of nothing' as SessionId);
    const requests = (session: Session) => [0, 1].map(() => cache.request(ACME, session.id));
    expect(cache.request(OTHER, endedSession.id)).to.equal(undefined);
    expect(requests(open)).to.deep.equal([open.request, open.request]);
    expect(requests(endedSession)).to.deep.equal([endedSession.request, undefined]);
    expect(findSession('ended')).to.equal(undefined);
  });

  it('returns the sources of the last ended sessions, up to a limit', () => {
    const names = Array.from({ length: 100 }, (_, index) => `${index}`);
    for (const name of names) {
      cache.setSession(aSession(name));
      cache.updateStatus(ACME, `id of ${name}` as SessionId, 'completed', 2);
    }
    const cachedRequests = names.filter((name) => cache.request(ACME, `id of ${name}` as SessionId) !== undefined);
    expect(cachedRequests).to.deep.equal(names.slice(-64));
  });

  it('updates a session, and ignores unknown ones', () => {
    cache.setSession(aSession('one'));
    cache.updateStatus(ACME, 'id of one' as SessionId, 'fetched', 2);
    cache.updateStatus(OTHER, 'id of one' as SessionId, 'failed', 3);
    cache.updateStatus(ACME, 'id of two' as SessionId, 'fetched', 2);
    expect(findSession('one')).to.deep.include({ status: 'fetched', version: 2 });
    expect(findSession('two')).to.equal(undefined);
  });

  it('removes a session of this tenant', () => {
    cache.setSession(aSession('one'));
    cache.forgetSession(OTHER, 'id of one' as SessionId);
    expect(findSession('one')).not.to.equal(undefined);
    cache.forgetSession(ACME, 'id of one' as SessionId);
    expect(findSession('one')).to.equal(undefined);
    cache.updateStatus(ACME, 'id of one' as SessionId, 'fetched', 2);
    expect(findSession('one'), 'and does not change its position').to.equal(undefined);
  });

  it('caches a new grant by the hash of its code', () => {
    cache.setGrant(ACME, GRANT);
    const fresh = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
    expect(cache.grant(ACME, 'hash')).to.deep.equal({ ...GRANT, ...fresh });
    expect(cache.grant(OTHER, 'hash')).to.equal(undefined);
    cache.forgetGrant(OTHER, GRANT.id);
    expect(cache.grant(ACME, 'hash')).not.to.equal(undefined);
    cache.forgetGrant(ACME, GRANT.id);
    expect(cache.grant(ACME, 'hash')).to.equal(undefined);
  });

  it('contains no session that ended and was removed', () => {
    const session = aSession('one');
    cache.setSession(session);
    cache.endSession(ACME, session.id);
    cache.forgetSession(ACME, session.id);
    expect(cache.request(ACME, session.id)).to.equal(undefined);
  });

  it('distinguishes a session from a grant of the same name', () => {
    cache.setGrant(ACME, GRANT);
    cache.setSession(aSession('one'));
    expect([findSession('hash'), cache.grant(ACME, 'one')]).to.deep.equal([undefined, undefined]);
  });

  it('is limited by bytes, not by number, and keeps the newest sessions', () => {
    const large = { text: 'x'.repeat(MEBIBYTE) };
    const names = Array.from({ length: 40 }, (_, index) => `session ${index}`);
    for (const name of names) cache.setSession(aSession(name, large));
    const cachedNames = names.filter((name) => findSession(name) !== undefined);
    expect(cachedNames.length).to.be.within(14, 16);
    expect(cachedNames).to.deep.equal(names.slice(-cachedNames.length));
    const bytes = cachedNames.reduce((sum, name) => sum + sizeOf(findSession(name)), 0);
    expect(bytes).to.be.at.most(16 * MEBIBYTE);
  });

  it('does not cache a value that is larger than its limit', () => {
    cache.setSession(aSession('small'));
    cache.setSession(aSession('large', { text: 'x'.repeat(17 * MEBIBYTE) }));
    cache.updateStatus(ACME, 'id of large' as SessionId, 'fetched', 2);
    expect(findSession('large')).to.equal(undefined);
    expect(findSession('small')).not.to.equal(undefined);
  });

  it('removes entries after five minutes', () => {
    const start = performance.now();
    const now = sinon.stub(performance, 'now').returns(start);
    cache.setSession(aSession('one'));
    cache.setGrant(ACME, GRANT);
    now.returns(start + 5 * 60_000 - 100);
    expect([findSession('one'), cache.grant(ACME, 'hash')]).not.to.include(undefined);
    now.returns(start + 5 * 60_000 + 100);
    expect([findSession('one'), cache.grant(ACME, 'hash')]).to.deep.equal([undefined, undefined]);
  });
});
