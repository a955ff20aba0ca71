import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { AuditLogQuery, ListAuditEntries } from '../../../application/audit/audit-entries.ts';
import type { Caller } from '../../../application/caller.ts';
import { describeChange, describeClient, describeNewClient, describeRevocation } from '../../../domain/audit/describe-change.ts';
import type { Client } from '../../../domain/clients/client.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import { ACME, type AdministrationWorld, anAdministration, endOf, ROOT } from '../administrators.ts';

describe('audit log entries', () => {
  let world: AdministrationWorld;
  let admin: Caller;
  const list = (query: object = {}, by: Caller = admin) => new ListAuditEntries(world).execute(by, AuditLogQuery.parse(query));
  const briefly = async (query: object = {}, by?: Caller) =>
    (await list(query, by)).entries.map(({ action, kind, target }) => `${action} ${kind} ${target}`);
  const note = (kind: 'client' | 'trust-list', target: string, by: 'system' | Caller = 'system') =>
    world.store.forTenant(ACME, async ({ audit }) => audit.note({ action: 'changed', kind, target, changes: [] }), { by: by as 'system' });

  beforeEach(async () => {
    world = await anAdministration();
    admin = world.caller(['clients:manage']);
    await world.store.prepare('three notes', async () => {
      await note('client', 'one');
      await note('trust-list', 'two', admin);
      await note('client', 'three');
    });
  });

  it('are listed newest first', async () => {
    const found = await briefly();
    expect(found.slice(0, 3)).to.deep.equal(['changed client three', 'changed trust-list two', 'changed client one']);
    expect(found.at(-1)).to.equal('created tenant acme');
  });

  it('are returned in pages with the cursor of the next page', async () => {
    const all = await briefly();
    const found: string[] = [];
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = await list({ limit: 2, ...(cursor !== undefined && { cursor }) });
      expect(page.entries.length).to.be.within(1, 2);
      found.push(...page.entries.map(({ action, kind, target }) => `${action} ${kind} ${target}`));
      cursor = page.next;
    }
    expect(found).to.deep.equal(all);
    expect(await briefly({ sort: 'asc' })).to.deep.equal(all.toReversed());
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
  for (const [query, wanted] of filters) {
    it(`are filtered by ${JSON.stringify(query)}`, async () => {
      expect(await briefly(query)).to.deep.equal(wanted);
    });
  }

  it('are those of the tenant for its clients, and of the service or any tenant for tenant administrators', async () => {
    const own = await briefly();
    expect(await briefly({ tenant: ACME })).to.deep.equal(own);
    expect(await briefly({ tenant: ACME }, ROOT)).to.deep.equal(own);
    const service = await briefly({}, ROOT);
    expect(service).to.include('created tenant acme').and.not.include('changed client one');
  });

  const refusals: [string, object, (() => Caller) | undefined, string][] = [
    ['another tenant', { tenant: 'other' }, undefined, 'not_found'],
    ['a tenant that is not there', { tenant: 'nobody' }, () => ROOT, 'not_found'],
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
  for (const [what, query, by, end] of refusals) {
    it(`are not returned to ${what}: ${end}`, async () => {
      expect(await endOf(list(query, by?.()))).to.equal(end);
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
  let one: CertifiedKey;
  let other: CertifiedKey;
  before(async () => {
    one = await certify({ name: 'One', ca: true });
    other = await certify({ name: 'Other', ca: true });
  });

  it('logs the pinned signers of a trust list and omits its address', () => {
    const trustList = 'https://lists.example/trust?token=secret';
    const before = { trustAnchors: [{ ownAuthorities: true }] };
    const after = {
      trustAnchors: [{ certificate: pem(one) }, { certificate: pem(one), pin: true }, { trustList, signedBy: [pem(other)] }, { trustList }],
      dcql_query: { credentials: [] },
    };
    const { changes } = describeChange('presentation-configuration', 'age', before, after);
    expect(changes).to.deep.equal([
      { member: 'dcql_query' },
      {
        member: 'trustAnchors',
        before: [{ ownAuthorities: true }],
        after: [
          { certificate: fingerprint(one) },
          { certificate: fingerprint(one), pin: true },
          { trustList: 'lists.example', signedBy: [fingerprint(other)] },
          { trustList: 'lists.example', signedBy: [] },
        ],
      },
    ]);
    expect(JSON.stringify(changes)).to.not.include('secret').and.not.include('CERTIFICATE');
  });

  it('logs the replacement of a pinned signer, and the first pinned signer', () => {
    const pinned = (...signers: CertifiedKey[]) => ({ walletProviderTrustListCertificates: signers.map(pem) });
    const { changes } = describeChange('issuance-configuration', 'default', pinned(one), pinned(other));
    expect(changes).to.deep.equal([
      { member: 'walletProviderTrustListCertificates', before: [fingerprint(one)], after: [fingerprint(other)] },
    ]);
    expect(describeChange('issuance-configuration', 'default', undefined, pinned(one)).changes).to.deep.equal([
      { member: 'walletProviderTrustListCertificates', after: [fingerprint(one)] },
    ]);
  });
});

describe('description of a change', () => {
  const list = { id: 'a', keyChainId: 'k', bits: 1, capacity: 100, ttlSeconds: 60, secret: 'hidden' };
  const told = (before: object | undefined, after: object | undefined) => describeChange('status-list', 'a', before, after);

  it('contains the action and the changed properties', () => {
    expect(told(list, undefined)).to.deep.equal({ action: 'removed', kind: 'status-list', target: 'a', changes: [] });
    expect(told(undefined, list).action).to.equal('created');
    expect(told(list, { ...list, bits: 2 })).to.deep.include({ action: 'changed', changes: [{ member: 'bits', before: 1, after: 2 }] });
  });

  it('contains no unchanged and no secret values', () => {
    expect(told(list, { ...list }).changes).to.deep.equal([]);
    expect(told({ ...list, version: 1, updatedAt: 1 }, { ...list, version: 2, updatedAt: 2 }).changes).to.deep.equal([]);
    expect(told(list, { ...list, secret: 'other' }).changes).to.deep.equal([{ member: 'secret' }]);
    expect(told({ ...list, nested: { a: null, b: 1 } }, { ...list, nested: { b: 1 } }).changes).to.deep.equal([]);
    expect(told({ ...list, nested: { b: undefined } }, { ...list, nested: {} }).changes).to.deep.equal([]);
    expect(told({ ...list, nested: { b: 1 } }, { ...list, nested: { b: 2 } }).changes).to.deep.equal([{ member: 'nested' }]);
  });

  it('has one side only if the other one is empty or too long', () => {
    expect(told({ ...list, keyChainId: null }, list).changes).to.deep.equal([{ member: 'keyChainId', after: 'k' }]);
    expect(told({ ...list, keyChainId: undefined }, list).changes).to.deep.equal([{ member: 'keyChainId', after: 'k' }]);
    expect(told(list, { ...list, keyChainId: null }).changes).to.deep.equal([{ member: 'keyChainId', before: 'k' }]);
    const long = 'x'.repeat(3_000);
    expect(told(list, { ...list, keyChainId: long }).changes).to.deep.equal([{ member: 'keyChainId', before: 'k' }]);
    expect(told({ ...list, keyChainId: long }, list).changes).to.deep.equal([{ member: 'keyChainId', after: 'k' }]);
  });

  const now = new Date('2027-01-15T08:00:00Z');
  const client: Client = {
    ...{ clientId: 'shop', tenantId: null, roles: ['clients:manage'], description: null },
    ...{ allowedPresentationConfigs: null, allowedIssuanceConfigs: null, secretHash: 'h', secretRevision: 1 },
    ...{ formerSecretUntil: null, pickUp: null, version: 1, createdAt: now, updatedAt: now },
  };
  const waiting = (expiresAt: Date): Client => ({ ...client, pickUp: { sealedSecret: 's', role: 'clients:manage', expiresAt } });

  it('of a client shows whether its secret or its rights were changed', () => {
    const actionOf = (before: Client, after: Client) => {
      const { action, changes } = describeClient(before, after, now);
      return `${action} ${changes.map(({ member }) => member).join()}`;
    };
    expect(actionOf(client, { ...client, secretHash: 'i' })).to.equal('rotated secret');
    const later = new Date(now.getTime() + 1);
    expect(actionOf(waiting(later), client)).to.equal('fetched secret');
    expect(actionOf(waiting(now), client)).to.equal('expired secret');
    expect(actionOf(client, { ...client, roles: ['issuance:offer'] })).to.equal('changed roles');
    const other = { ...waiting(later), roles: ['issuance:offer'] as const };
    expect(actionOf(waiting(later), other), 'while a secret waits').to.equal('changed roles');
    expect(describeNewClient(client).changes.at(-1)).to.deep.equal({ member: 'secret' });
  });

  it('of credentials shows their new status and their indices', () => {
    const revoked = describeRevocation({ sessionId: 's' }, [{ status: 1 }, { status: 1 }]);
    expect(revoked).to.deep.include({
      action: 'revoked',
      changes: [
        { member: 'status', after: 1 },
        { member: 'credentials', after: 2 },
      ],
    });
    const some = describeRevocation({ sessionId: 's', credentialConfigurationId: 'pid' }, [{ status: 2 }]);
    expect(some.action).to.equal('suspended');
    expect(some.changes.at(-1)).to.deep.equal({ member: 'credentialConfigurationId', after: 'pid' });
    expect(describeRevocation({ sessionId: 's' }, []).action).to.equal('restored');
    expect(describeRevocation({ sessionId: 's' }, [{ status: 9 }]).action).to.equal('changed');
  });
});
