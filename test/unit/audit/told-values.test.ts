import { createHash } from 'node:crypto';
import { expect } from 'chai';
import {
  describeChange,
  describeClient,
  describeNewClient,
  describeRevocation,
} from '../../../domain/audit/describe-change.ts';
import type { Client } from '../../../domain/clients/client.ts';
import { type Certified, certify, pem } from '../../support/test-certificates.ts';

const fingerprint = ({ certificate }: Certified) =>
  createHash('sha256').update(Buffer.from(certificate, 'base64')).digest('base64url');

describe('Whom a change trusts', () => {
  let one: Certified;
  let other: Certified;
  before(async () => {
    one = await certify({ name: 'One', ca: true });
    other = await certify({ name: 'Other', ca: true });
  });

  it('is told of a presentation configuration, with who is pinned for a list, and no address', () => {
    const trustList = 'https://lists.example/trust?token=secret';
    const before = { trustAnchors: [{ ownAuthorities: true }] };
    const after = {
      trustAnchors: [
        { certificate: pem(one) },
        { certificate: pem(one), pin: true },
        { trustList, signedBy: [pem(other)] },
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
          { certificate: fingerprint(one) },
          { certificate: fingerprint(one), pin: true },
          { trustList: 'lists.example', signedBy: [fingerprint(other)] },
          { trustList: 'lists.example', signedBy: [] },
        ],
      },
    ]);
    expect(JSON.stringify(changes)).to.not.include('secret').and.not.include('CERTIFICATE');
  });

  it('is told when another signer is pinned, and when the first one is', () => {
    const pinned = (...signers: Certified[]) => ({ walletProviderTrustListCertificates: signers.map(pem) });
    const { changes } = describeChange('issuance-configuration', 'default', pinned(one), pinned(other));
    expect(changes).to.deep.equal([
      {
        member: 'walletProviderTrustListCertificates',
        before: [fingerprint(one)],
        after: [fingerprint(other)],
      },
    ]);
    expect(describeChange('issuance-configuration', 'default', undefined, pinned(one)).changes).to.deep.equal(
      [{ member: 'walletProviderTrustListCertificates', after: [fingerprint(one)] }],
    );
  });
});

describe('What a change of a thing says', () => {
  const list = { id: 'a', keyChainId: 'k', bits: 1, capacity: 100, ttlSeconds: 60, secret: 'hidden' };
  const told = (before: object | undefined, after: object | undefined) =>
    describeChange('status-list', 'a', before, after);

  it('is what became of it', () => {
    expect(told(list, undefined)).to.deep.equal({
      action: 'removed',
      kind: 'status-list',
      target: 'a',
      changes: [],
    });
    expect(told(undefined, list).action).to.equal('created');
    expect(told(list, { ...list, bits: 2 })).to.deep.include({
      action: 'changed',
      changes: [{ member: 'bits', before: 1, after: 2 }],
    });
  });

  it('is nothing of what stays, and no value that is secret', () => {
    expect(told(list, { ...list }).changes).to.deep.equal([]);
    expect(
      told({ ...list, version: 1, updatedAt: 1 }, { ...list, version: 2, updatedAt: 2 }).changes,
    ).to.deep.equal([]);
    expect(told(list, { ...list, secret: 'other' }).changes).to.deep.equal([{ member: 'secret' }]);
    expect(told({ ...list, nested: { a: null, b: 1 } }, { ...list, nested: { b: 1 } }).changes).to.deep.equal(
      [],
    );
    expect(told({ ...list, nested: { b: undefined } }, { ...list, nested: {} }).changes).to.deep.equal([]);
    expect(told({ ...list, nested: { b: 1 } }, { ...list, nested: { b: 2 } }).changes).to.deep.equal([
      { member: 'nested' },
    ]);
  });

  it('is one side alone where the other was nothing, or is too long to be read', () => {
    expect(told({ ...list, keyChainId: null }, list).changes).to.deep.equal([
      { member: 'keyChainId', after: 'k' },
    ]);
    expect(told({ ...list, keyChainId: undefined }, list).changes).to.deep.equal([
      { member: 'keyChainId', after: 'k' },
    ]);
    expect(told(list, { ...list, keyChainId: null }).changes).to.deep.equal([
      { member: 'keyChainId', before: 'k' },
    ]);
    const long = 'x'.repeat(3_000);
    expect(told(list, { ...list, keyChainId: long }).changes).to.deep.equal([
      { member: 'keyChainId', before: 'k' },
    ]);
    expect(told({ ...list, keyChainId: long }, list).changes).to.deep.equal([
      { member: 'keyChainId', after: 'k' },
    ]);
  });

  const now = new Date('2027-01-15T08:00:00Z');
  const client: Client = {
    ...{ clientId: 'shop', tenantId: null, roles: ['clients:manage'], description: null },
    ...{ allowedPresentationConfigs: null, allowedIssuanceConfigs: null, secretHash: 'h', secretRevision: 1 },
    ...{ formerSecretUntil: null, pickUp: null, version: 1, createdAt: now, updatedAt: now },
  };
  const waiting = (expiresAt: Date): Client => ({
    ...client,
    pickUp: { sealedSecret: 's', role: 'clients:manage', expiresAt },
  });

  it('is of a client whether its secret or its rights are others', () => {
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

  it('is of credentials what became of them, and of which', () => {
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
