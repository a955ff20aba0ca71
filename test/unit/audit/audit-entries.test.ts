import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { AuditLogQuery, ListAuditEntries } from '../../../application/audit/audit-entries.ts';
import type { Caller } from '../../../application/caller.ts';
import { describeChange, describeClient, describeNewClient, describeRevocation } from '../../../domain/audit/describe-change.ts';
import type { Client } from '../../../domain/clients/client.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import { ACME, type AdministrationWorld, anAdministration, outcomeOf, ROOT } from '../administrators.ts';

describe('audit log entries', () => {
  let world: AdministrationWorld;
  let admin: Caller;
  const list = (query: object = {}, caller: Caller = admin) => new ListAuditEntries(world).execute(caller, AuditLogQuery.parse(query));
  const summaries = async (query: object = {}, caller?: Caller) =>
    (await list(query, caller)).entries.map(({ action, kind, target }) => `${action} ${kind} ${target}`);
  const addEntry = (kind: 'client' | 'trust-list', target: string, caller: 'system' | Caller = 'system') =>
    world.store.forTenant(ACME, async ({ audit }) => audit.note({ action: 'changed', kind, target, changes: [] }), {
      by: caller as 'system',
    });

  beforeEach(async () => {
    world = await anAdministration();
    admin = world.caller(['clients:manage']);
    await world.store.prepare('three notes', async () => {
      await addEntry('client', 'one');
      await addEntry('trust-list', 'two', admin);
      await addEntry('client', 'three');
    });
  });

  it('are listed newest first', async () => {
    const entries = await summaries();
    expect(entries.slice(0, 3)).to.deep.equal(['changed client three', 'changed trust-list two', 'changed client one']);
    expect(entries.at(-1)).to.equal('created tenant acme');
  });

  it('are returned in pages with the cursor of the next page', async () => {
    const all = await summaries();
    const entries: string[] = [];
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = await list({ limit: 2, ...(cursor !== undefined && { cursor }) });
      expect(page.entries.length).to.be.within(1, 2);
      entries.push(...page.entries.map(({ action, kind, target }) => `${action} ${kind} ${target}`));
      cursor = page.next;
    }
    expect(entries).to.deep.equal(all);
    expect(await summaries({ sort: 'asc' })).to.deep.equal(all.toReversed());
    expect(await list({ limit: all.length })).to.not.have.property('next');
  });

  const filters: [object, string[]][] = [
    [{ kind: 'trust-list' }, ['changed trust-list two']],
    [{ target: 'one' }, ['changed client one']],
    [{ actor: 'acme-admin' }, ['changed trust-list two']],
    [{ kind: 'client', action: 'changed' }, ['changed client three', 'changed client one']],
    [{ kind: 'client', action: 'removed' }, []],
    [{ since: '2999-01-01T00:00:00Z' }, []],
    [{ until: '2000-01-01T00:00:00Z' }, []],
  ];
  for (const [query, expected] of filters) {
    it(`are filtered by ${JSON.stringify(query)}`, async () => {
      expect(await summaries(query)).to.deep.equal(expected);
    });
  }

  it('are those of the tenant for its clients, and of the service or any tenant for tenant administrators', async () => {
    const tenantEntries = await summaries();
    expect(await summaries({ tenant: ACME })).to.deep.equal(tenantEntries);
    expect(await summaries({ tenant: ACME }, ROOT)).to.deep.equal(tenantEntries);
    const service = await summaries({}, ROOT);
    expect(service).to.include('created tenant acme').and.not.include('changed client one');
  });

  const rejections: [string, object, (() => Caller) | undefined, string][] = [
    ['another tenant', { tenant: 'other' }, undefined, 'not_found'],
    ['an unknown tenant', { tenant: 'unknown' }, () => ROOT, 'not_found'],
    [
      'a client that is restricted to some credentials',
      {},
      () => world.caller(['clients:manage'], { allowedIssuanceConfigs: ['card'] }),
      'forbidden',
    ],
    [
      'a client that is restricted to some presentations',
      {},
      () => world.caller(['clients:manage'], { allowedPresentationConfigs: ['age'] }),
      'forbidden',
    ],
  ];
  for (const [description, query, caller, outcome] of rejections) {
    it(`are not returned to ${description}: ${outcome}`, async () => {
      expect(await outcomeOf(list(query, caller?.()))).to.equal(outcome);
    });
  }

  for (const cursor of ['x', '0', '-1', '1e3', '9'.repeat(16)]) {
    it(`are not returned from the cursor ${cursor}`, () => {
      const { success, error } = AuditLogQuery.safeParse({ cursor });
      expect([success, error?.issues.map(({ path }) => path.join('.'))]).to.deep.equal([false, ['cursor']]);
    });
  }
});

const fingerprint = ({ certificate }: CertifiedKey) => createHash('sha256').update(Buffer.from(certificate, 'base64')).digest('base64url');

describe('change of trust anchors', () => {
  let first: CertifiedKey;
  let second: CertifiedKey;
  before(async () => {
    first = await certify({ name: 'One', ca: true });
    second = await certify({ name: 'Other', ca: true });
  });

  it('logs the pinned signers of a trust list and omits its address', () => {
    const trustList = 'https://lists.example/trust?token=secret';
    const before = { trustAnchors: [{ ownAuthorities: true }] };
    const after = {
      trustAnchors: [
        { certificate: pem(first) },
        { certificate: pem(first), pin: true },
        { trustList, signedBy: [pem(second)] },
        { trustList },
      ],
      dcql_query: { credentials: [] },
    };
    const { changes } = describeChange('presentation-configuration', 'age', before, after);
    expect(changes).to.deep.equal([
      { member: 'dcql_query' },
      {
        member: 'trustAnchors',
        before: [{ ownAuthorities: true }],
        after: [
          { certificate: fingerprint(first) },
          { certificate: fingerprint(first), pin: true },
          { trustList: 'lists.example', signedBy: [fingerprint(second)] },
          { trustList: 'lists.example', signedBy: [] },
        ],
      },
    ]);
    expect(JSON.stringify(changes)).to.not.include('secret').and.not.include('CERTIFICATE');
  });

  it('logs the replacement of a pinned signer, and the first pinned signer', () => {
    const pinned = (...signers: CertifiedKey[]) => ({ walletProviderTrustListCertificates: signers.map(pem) });
    const { changes } = describeChange('issuance-configuration', 'default', pinned(first), pinned(second));
    expect(changes).to.deep.equal([
      { member: 'walletProviderTrustListCertificates', before: [fingerprint(first)], after: [fingerprint(second)] },
    ]);
    expect(describeChange('issuance-configuration', 'default', undefined, pinned(first)).changes).to.deep.equal([
      { member: 'walletProviderTrustListCertificates', after: [fingerprint(first)] },
    ]);
  });
});

describe('description of a change', () => {
  const list = { id: 'a', keyChainId: 'k', bits: 1, capacity: 100, ttlSeconds: 60, secret: 'hidden' };
  const describeList = (before: object | undefined, after: object | undefined) => describeChange('status-list', 'a', before, after);

  it('contains the action and the changed properties', () => {
    expect(describeList(list, undefined)).to.deep.equal({ action: 'removed', kind: 'status-list', target: 'a', changes: [] });
    expect(describeList(undefined, list).action).to.equal('created');
    expect(describeList(list, { ...list, bits: 2 })).to.deep.include({
      action: 'changed',
      changes: [{ member: 'bits', before: 1, after: 2 }],
    });
  });

  it('contains no unchanged and no secret values', () => {
    expect(describeList(list, { ...list }).changes).to.deep.equal([]);
    expect(describeList({ ...list, version: 1, updatedAt: 1 }, { ...list, version: 2, updatedAt: 2 }).changes).to.deep.equal([]);
    expect(describeList(list, { ...list, secret: 'other' }).changes).to.deep.equal([{ member: 'secret' }]);
    expect(describeList({ ...list, nested: { a: null, b: 1 } }, { ...list, nested: { b: 1 } }).changes).to.deep.equal([]);
    expect(describeList({ ...list, nested: { b: undefined } }, { ...list, nested: {} }).changes).to.deep.equal([]);
    expect(describeList({ ...list, nested: { b: 1 } }, { ...list, nested: { b: 2 } }).changes).to.deep.equal([{ member: 'nested' }]);
  });

  it('has one side only if the other one is empty or too long', () => {
    expect(describeList({ ...list, keyChainId: null }, list).changes).to.deep.equal([{ member: 'keyChainId', after: 'k' }]);
    expect(describeList({ ...list, keyChainId: undefined }, list).changes).to.deep.equal([{ member: 'keyChainId', after: 'k' }]);
    expect(describeList(list, { ...list, keyChainId: null }).changes).to.deep.equal([{ member: 'keyChainId', before: 'k' }]);
    const longId = 'x'.repeat(3_000);
    expect(describeList(list, { ...list, keyChainId: longId }).changes).to.deep.equal([{ member: 'keyChainId', before: 'k' }]);
    expect(describeList({ ...list, keyChainId: longId }, list).changes).to.deep.equal([{ member: 'keyChainId', after: 'k' }]);
  });

  const now = new Date('2027-01-15T08:00:00Z');
  const client: Client = {
    ...{ clientId: 'shop', tenantId: null, roles: ['clients:manage'], description: null },
    ...{ allowedPresentationConfigs: null, allowedIssuanceConfigs: null, secretHash: 'h', secretRevision: 1 },
    ...{ formerSecretUntil: null, pickUp: null, version: 1, createdAt: now, updatedAt: now },
  };
  const withUnfetchedSecret = (expiresAt: Date): Client => ({
    ...client,
    pickUp: { sealedSecret: 's', role: 'clients:manage', expiresAt },
  });

  it('of a client shows whether its secret or its rights were changed', () => {
    const actionOf = (before: Client, after: Client) => {
      const { action, changes } = describeClient(before, after, now);
      return `${action} ${changes.map(({ member }) => member).join()}`;
    };
    expect(actionOf(client, { ...client, secretHash: 'i' })).to.equal('rotated secret');
    const later = new Date(now.getTime() + 1);
    expect(actionOf(withUnfetchedSecret(later), client)).to.equal('fetched secret');
    expect(actionOf(withUnfetchedSecret(now), client)).to.equal('expired secret');
    expect(actionOf(client, { ...client, roles: ['issuance:offer'] })).to.equal('changed roles');
    const second = { ...withUnfetchedSecret(later), roles: ['issuance:offer'] as const };
    expect(actionOf(withUnfetchedSecret(later), second), 'while a secret was not retrieved').to.equal('changed roles');
    expect(describeNewClient(client).changes.at(-1)).to.deep.equal({ member: 'secret' });
  });

  it('of credentials shows their new status and their indices', () => {
    const revocation = describeRevocation({ sessionId: 's' }, [{ status: 1 }, { status: 1 }]);
    expect(revocation).to.deep.include({
      action: 'revoked',
      changes: [
        { member: 'status', after: 1 },
        { member: 'credentials', after: 2 },
      ],
    });
    const suspension = describeRevocation({ sessionId: 's', credentialConfigurationId: 'pid' }, [{ status: 2 }]);
    expect(suspension.action).to.equal('suspended');
    expect(suspension.changes.at(-1)).to.deep.equal({ member: 'credentialConfigurationId', after: 'pid' });
    expect(describeRevocation({ sessionId: 's' }, []).action).to.equal('restored');
    expect(describeRevocation({ sessionId: 's' }, [{ status: 9 }]).action).to.equal('changed');
  });
});
