import { expect } from 'chai';
import {
  assertMayGrant,
  assertMayUse,
  type Client,
  isRestricted,
  isSecretCurrent,
  mayUse,
  withSecret,
} from '../../../domain/clients/client.ts';
import { assertOwnNames, type Named } from '../../../domain/clients/own-names.ts';
import { Role } from '../../../domain/clients/role.ts';
import { isServiceName } from '../../../domain/clients/service-names.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { assertBytes, assertCount, isCounted, isWeighed } from '../../../domain/tenants/quotas.ts';
import { effectiveStatusListConfig } from '../../../domain/tenants/tenant.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

const ended = (work: () => void) => {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
};

describe('The secret of a client', () => {
  const client = { secretRevision: 4, formerSecretUntil: null, pickUp: {} } as unknown as Client;

  it('ends the tokens of the one before, at once or after a while', () => {
    const { secretRevision, formerSecretUntil, pickUp } = withSecret(client, 'h', NOW);
    expect([secretRevision, formerSecretUntil, pickUp]).to.deep.equal([5, null, null]);
    expect(withSecret(client, 'h', NOW, 60).formerSecretUntil).to.deep.equal(at(60));
  });

  it('counts with its revision, and the one before for as long as that is said', () => {
    const graced = { secretRevision: 5, formerSecretUntil: at(60) };
    const counts = (revision: number, of = graced as Parameters<typeof isSecretCurrent>[0], now = NOW) =>
      isSecretCurrent(of, revision, now);
    expect([counts(5), counts(4)]).to.deep.equal([true, true]);
    expect([counts(3), counts(6), counts(4, graced, at(60))]).to.deep.equal(Array(3).fill(false));
    expect(counts(4, { ...graced, formerSecretUntil: null })).to.equal(false);
  });
});

describe('What a client may do', () => {
  it('is granted by who may do it itself, and never across tenants', () => {
    const grants = (granted: Role[], granter: Role[]) => ended(() => assertMayGrant(granted, granter));
    expect(grants(['issuance:offer'], ['issuance:offer', 'clients:manage'])).to.equal('done');
    expect(grants(['issuance:manage'], ['issuance:offer'])).to.equal('forbidden');
    expect(grants(['tenants:manage'], ['tenants:manage'])).to.equal('invalid_input');
    expect(Role.parse('presentation:offer')).to.equal('presentation:request');
    expect(Role.parse('issuance:offer')).to.equal('issuance:offer');
  });

  it('is all that no list restricts', () => {
    const lists = (presentations: string[] | null, issuances: string[] | null) =>
      isRestricted({ allowedPresentationConfigs: presentations, allowedIssuanceConfigs: issuances });
    expect([lists(null, null), lists([], []), lists(['a'], null), lists(null, ['a'])]).to.deep.equal([
      ...[false, false, true, true],
    ]);
    expect([mayUse(null, 'a'), mayUse([], 'a'), mayUse(['a'], 'a'), mayUse(['b'], 'a')]).to.deep.equal([
      ...[true, true, true, false],
    ]);
    expect(ended(() => assertMayUse(['a', 'b'], ['a', 'b']))).to.equal('done');
    expect(ended(() => assertMayUse(['a'], ['a', 'b']))).to.equal('forbidden');
  });

  const named = (id: string, ...names: string[]): Named => ({ id, names: { vct: names } });
  const others = [named('a', 'urn:a'), named('b', 'urn:b'), named('hidden', 'urn:hidden')];
  const writes = (allowed: string[] | null, wanted: Named, before?: Named) =>
    ended(() => assertOwnNames(allowed, wanted, before, others));

  it('is no other configuration by its name', () => {
    expect(writes(['a'], named('a', 'urn:hidden'))).to.equal('forbidden');
    expect(writes(['a'], named('a', 'urn:new', 'urn:b'))).to.equal('forbidden');
    expect(writes(['a', 'b'], named('a', 'urn:b')), 'one that it may use as well').to.equal('done');
    expect(writes(['a'], named('a', 'urn:new'))).to.equal('done');
    expect(writes(['a'], named('a', 'urn:a')), 'what it has').to.equal('done');
    expect(writes(['a'], named('hidden', 'urn:hidden')), 'what the other itself has').to.equal('done');
    expect(writes(['a'], named('a', 'urn:b'), named('a', 'urn:b')), 'what it had').to.equal('done');
    for (const all of [null, []]) expect(writes(all, named('a', 'urn:hidden'))).to.equal('done');
  });

  it('is not done in the name of the service', () => {
    for (const name of ['folder import', ' Folder  IMPORT ']) expect(isServiceName(name)).to.equal(true);
    expect(isServiceName('folder-import')).to.equal(false);
  });
});

describe('What a tenant may have', () => {
  const quotas = {
    ...{ 'credential-configuration': 2, 'presentation-configuration': 2, 'key-chain': 2, client: 2 },
    bytes: 100,
    sessionBytes: 100,
  };

  it('is counted up to its quotas', () => {
    expect([2, 3].map((count) => ended(() => assertCount('client', count, quotas)))).to.deep.equal([
      ...['done', 'conflict'],
    ]);
    expect([100, 101].map((bytes) => ended(() => assertBytes(bytes, quotas)))).to.deep.equal([
      ...['done', 'conflict'],
    ]);
    expect([isCounted('client'), isCounted('toString')]).to.deep.equal([true, false]);
    expect([isWeighed('issuance-configuration'), isWeighed('client')]).to.deep.equal([true, false]);
  });

  it('are status lists of the shape that it wishes, else of the usual one', () => {
    const defaults = { capacity: 1000, bits: 1, ttl: 3600 } as const;
    expect(effectiveStatusListConfig(null, defaults)).to.deep.equal({
      ...{ ...defaults, immediateUpdate: false, enableAggregation: true },
    });
    const wish = {
      capacity: 200,
      bits: 2,
      ttl: 60,
      immediateUpdate: true,
      enableAggregation: false,
    } as const;
    expect(effectiveStatusListConfig(wish, defaults)).to.deep.equal(wish);
  });
});
