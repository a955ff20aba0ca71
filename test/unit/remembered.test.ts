import { expect } from 'chai';
import sinon from 'sinon';
import { setCacheMemory } from '../../application/tenant-cache/bounded.ts';
import { Remembered } from '../../application/tenant-cache/remembered.ts';
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
    request: {
      kind: 'issuance',
      offerRequest: {},
      offer,
      offerUrl: '',
      credentialClaims: {},
    } as IssuanceRequest,
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

describe('Remembered', () => {
  let remembered: Remembered;

  beforeEach(() => {
    // Services that ran in this process had less.
    setCacheMemory(472);
    remembered = new Remembered();
  });
  afterEach(() => sinon.restore());

  const find = (name: string, tenantId = ACME) => remembered.session(tenantId, name as PublicId);

  it('finds a session by its public id, at its own tenant only', () => {
    const session = aSession('one');
    remembered.keepSession(session);
    expect([find('one'), find('one', OTHER), find('two')]).to.deep.equal([session, undefined, undefined]);
  });

  it('forgets a session that has ended', () => {
    for (const [number, status] of (['completed', 'failed', 'expired'] as const).entries()) {
      remembered.keepSession(aSession(`${number}`));
      remembered.move(ACME, `id of ${number}` as SessionId, status, 2);
      expect(find(`${number}`), status).to.equal(undefined);
    }
  });

  it('tells what a session was made by while it is open, and once when it has ended', () => {
    const [open, ended] = [aSession('open', { a: 1 }), aSession('ended', { b: 1 })];
    for (const session of [open, ended]) remembered.keepSession(session);
    // What becomes known of its result later, such as a delivery, changes nothing.
    for (let times = 0; times < 2; times++) remembered.endSession(ACME, ended.id);
    remembered.endSession(ACME, 'id of nothing' as SessionId);
    const requests = (session: Session) => [0, 1].map(() => remembered.request(ACME, session.id));
    expect(remembered.request(OTHER, ended.id)).to.equal(undefined);
    expect(requests(open)).to.deep.equal([open.request, open.request]);
    expect(requests(ended)).to.deep.equal([ended.request, undefined]);
    expect(find('ended')).to.equal(undefined);
  });

  it('tells that of the last sessions that ended, and of few', () => {
    const names = Array.from({ length: 100 }, (_, index) => `${index}`);
    for (const name of names) {
      remembered.keepSession(aSession(name));
      remembered.move(ACME, `id of ${name}` as SessionId, 'completed', 2);
    }
    const told = names.filter((name) => remembered.request(ACME, `id of ${name}` as SessionId) !== undefined);
    expect(told).to.deep.equal(names.slice(-64));
  });

  it('moves a session, and leaves alone what it does not know', () => {
    remembered.keepSession(aSession('one'));
    remembered.move(ACME, 'id of one' as SessionId, 'fetched', 2);
    remembered.move(OTHER, 'id of one' as SessionId, 'failed', 3);
    remembered.move(ACME, 'id of two' as SessionId, 'fetched', 2);
    expect(find('one')).to.deep.include({ status: 'fetched', version: 2 });
    expect(find('two')).to.equal(undefined);
  });

  it('forgets a session of this tenant', () => {
    remembered.keepSession(aSession('one'));
    remembered.forgetSession(OTHER, 'id of one' as SessionId);
    expect(find('one')).not.to.equal(undefined);
    remembered.forgetSession(ACME, 'id of one' as SessionId);
    expect(find('one')).to.equal(undefined);
    remembered.move(ACME, 'id of one' as SessionId, 'fetched', 2);
    expect(find('one'), 'and moves nothing of it').to.equal(undefined);
  });

  it('keeps a grant as it begins, by the hash of its code', () => {
    remembered.keepGrant(ACME, GRANT);
    const fresh = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
    expect(remembered.grant(ACME, 'hash')).to.deep.equal({ ...GRANT, ...fresh });
    expect(remembered.grant(OTHER, 'hash')).to.equal(undefined);
    remembered.forgetGrant(OTHER, GRANT.id);
    expect(remembered.grant(ACME, 'hash')).not.to.equal(undefined);
    remembered.forgetGrant(ACME, GRANT.id);
    expect(remembered.grant(ACME, 'hash')).to.equal(undefined);
  });

  it('has nothing any more of a session that ended and was removed then', () => {
    const session = aSession('one');
    remembered.keepSession(session);
    remembered.endSession(ACME, session.id);
    remembered.forgetSession(ACME, session.id);
    expect(remembered.request(ACME, session.id)).to.equal(undefined);
  });

  it('takes no session for a grant of the same name', () => {
    remembered.keepGrant(ACME, GRANT);
    remembered.keepSession(aSession('one'));
    expect([find('hash'), remembered.grant(ACME, 'one')]).to.deep.equal([undefined, undefined]);
  });

  it('holds a number of bytes and not a number of sessions, the newest ones', () => {
    const large = { text: 'x'.repeat(MEBIBYTE) };
    const names = Array.from({ length: 40 }, (_, index) => `session ${index}`);
    for (const name of names) remembered.keepSession(aSession(name, large));
    const kept = names.filter((name) => find(name) !== undefined);
    expect(kept.length).to.be.within(14, 16);
    expect(kept).to.deep.equal(names.slice(-kept.length));
    const bytes = kept.reduce((sum, name) => sum + sizeOf(find(name)), 0);
    expect(bytes).to.be.at.most(16 * MEBIBYTE);
  });

  it('holds nothing that is larger than all of it', () => {
    remembered.keepSession(aSession('small'));
    remembered.keepSession(aSession('large', { text: 'x'.repeat(17 * MEBIBYTE) }));
    remembered.move(ACME, 'id of large' as SessionId, 'fetched', 2);
    expect(find('large')).to.equal(undefined);
    expect(find('small')).not.to.equal(undefined);
  });

  it('forgets after five minutes', () => {
    const start = performance.now();
    const now = sinon.stub(performance, 'now').returns(start);
    remembered.keepSession(aSession('one'));
    remembered.keepGrant(ACME, GRANT);
    now.returns(start + 5 * 60_000 - 100);
    expect([find('one'), remembered.grant(ACME, 'hash')]).not.to.include(undefined);
    now.returns(start + 5 * 60_000 + 100);
    expect([find('one'), remembered.grant(ACME, 'hash')]).to.deep.equal([undefined, undefined]);
  });
});
