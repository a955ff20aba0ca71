import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { PruneAuditLog } from '../../../application/audit/prune-audit-log.ts';
import { PIECE_ENTRIES, VerificationQuery, VerifyChain } from '../../../application/audit/verify-chain.ts';
import type { Caller } from '../../../application/caller.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { AuditQuery } from '../../../application/ports/repositories.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { Store } from '../../../application/ports/store.ts';
import {
  type Actor,
  type AuditChange,
  type AuditEntry,
  detailOf,
  nameOf,
  SERVICE_SCOPE,
  SYSTEM,
} from '../../../domain/audit/audit-entry.ts';
import { type AuditHead, appendEntries, beginChain, extendChain, sealHead, verifyOrRecordBreak } from '../../../domain/audit/chain.ts';
import { hmacKeyring, type MacKey } from '../../../domain/audit/macs.ts';
import { CHAIN_START, verifyEnd, verifyEntries } from '../../../domain/audit/verify-entries.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { ACME, type AdministrationWorld, anAdministration, outcomeOf, ROOT } from '../administrators.ts';

const SCOPE = 'acme';
const AT = new Date('2027-01-15T08:00:00Z');
const keyOf = (id: string): MacKey => ({ id, key: createSecretKey(Buffer.alloc(32, id)) });
const macs = hmacKeyring([keyOf('present')]);

const change = (target: string): AuditChange => ({ action: 'changed', kind: 'client', target, changes: [] });
const addition = (target: string, by: Actor = 'system') => ({ by, at: AT, change: change(target) });

type Chain = { readonly entries: readonly AuditEntry[]; readonly head: AuditHead };

/** Returns the chain after a writer appended entries for the targets. */
function extend({ entries, head }: { entries: readonly AuditEntry[]; head: AuditHead | undefined }, ...targets: string[]): Chain {
  const previous = { head, lastSequence: entries.at(-1)?.sequence ?? 0 };
  const result = extendChain(
    macs,
    SCOPE,
    previous,
    targets.map((target) => addition(target)),
  );
  return { entries: [...entries, ...result.entries], head: result.head };
}

const chainOf = (...targets: string[]) => extend({ entries: [], head: undefined }, ...targets);

/** Returns the first fault of the entries, or else the fault of the head. */
function faultOf({ entries, head }: { entries: readonly AuditEntry[]; head: AuditHead | undefined }, verifier = macs, scope = SCOPE) {
  const { progress, fault } = verifyEntries(verifier, scope, CHAIN_START, entries);
  return fault ?? verifyEnd(verifier, scope, progress, head);
}

const describeFault = (...parameters: Parameters<typeof faultOf>) => {
  const fault = faultOf(...parameters);
  return fault && `${fault.kind} ${fault.sequence}: ${fault.message}`;
};

describe('audit log chain', () => {
  it('is intact as written, in one and in several steps', () => {
    expect(faultOf(chainOf('a', 'b', 'c'))).to.equal(undefined);
    expect(faultOf(extend(extend(chainOf('a'), 'b'), 'c', 'd'))).to.equal(undefined);
    expect(chainOf('a', 'b').entries.map(({ sequence }) => sequence)).to.deep.equal([1, 2]);
  });

  it('may be missing for a tenant, and always exists for the service', () => {
    const emptyChain = { entries: [], head: undefined };
    expect(faultOf(emptyChain)).to.equal(undefined);
    expect(faultOf(emptyChain, macs, SERVICE_SCOPE)).to.include({ sequence: 1, kind: 'removed' });
    expect(faultOf(beginChain(macs, 2, AT), macs, SERVICE_SCOPE)).to.equal(undefined);
    const verified = verifyOrRecordBreak(macs, SCOPE, { head: undefined, lastSequence: 0 }, AT);
    expect(verified.entries).to.deep.equal([]);
    expect(faultOf(verified), 'a head without entries').to.equal(undefined);
  });

  it('requires at least one entry to be extended', () => {
    expect(() => chainOf()).to.throw('Nothing is no addition.');
  });

  it('records actor and request', () => {
    const caller = { clientId: 'admin', tenantId: SCOPE as TenantId, requestId: 'r-1' };
    const { entries } = extendChain(macs, SCOPE, { head: undefined, lastSequence: 0 }, [addition('a', caller), addition('b')]);
    expect(entries.map(({ actor }) => actor)).to.deep.equal(['admin', 'system']);
    expect(entries.map((entry) => detailOf(entry).requestId)).to.deep.equal(['r-1', undefined]);
  });

  for (const [clientId, name] of [
    ['admin', 'admin'],
    ['system', 'client system'],
    ['client system', 'client client system'],
    ['clients', 'clients'],
  ] as const) {
    it(`distinguishes the service from a client called "${clientId}"`, () => {
      expect(nameOf({ clientId, tenantId: null })).to.equal(name);
    });
  }
});

describe('tampering with the audit log chain', () => {
  const intact = chainOf('a', 'b', 'c', 'd');
  const [a, b, c, d] = intact.entries as [AuditEntry, AuditEntry, AuditEntry, AuditEntry];
  const { head } = intact;
  const alteredEntry = { ...b, target: 'x' };
  const shorter = chainOf('a', 'b');
  const unlinked = appendEntries(macs, SCOPE, { sequence: 1, hash: '' }, [addition('b')]);
  const cases: readonly (readonly [string, Partial<{ entries: AuditEntry[]; head: AuditHead | undefined }>, string])[] = [
    ['an altered entry', { entries: [a, alteredEntry, c, d] }, 'altered 2: entry 2 was altered or inserted'],
    ['an entry with a changed time', { entries: [a, { ...b, at: new Date(0) }, c, d] }, 'altered 2'],
    ['an entry removed from the middle', { entries: [a, c, d] }, 'removed 2: entry 2 is missing'],
    ['an entry without a predecessor', { entries: [a, ...unlinked.entries] }, 'altered 2'],
    ['two entries removed from the middle', { entries: [a, d] }, 'removed 2: entry 2 and all up to 3 are missing'],
    ['the first entry removed', { entries: [b, c, d] }, 'removed 1: entry 1 is missing'],
    [
      'an entry removed and the later ones renumbered',
      { entries: [a, { ...c, sequence: 2 }, { ...d, sequence: 3 }] },
      'altered 2: entry 2 was altered or inserted, or an entry before it was removed',
    ],
    [
      'two entries in swapped order',
      { entries: [a, { ...c, sequence: 2 }, { ...b, sequence: 3 }, d] },
      'reordered 2: entry 2 was written at another position',
    ],
    ['the last entry removed', { entries: [a, b, c] }, 'truncated 4: entry 4 is missing at the end'],
    ['several entries removed from the end', { entries: [a] }, 'truncated 2: entry 2 and all up to 4 are missing at the end'],
    ['all entries removed', { entries: [] }, 'truncated 1: entry 1 and all up to 4 are missing at the end'],
    ['no head', { head: undefined }, 'head_altered 4: the head of the chain is missing'],
    ['a head with the hash of another entry', { head: { ...head, hash: a.hash } }, 'head_altered 5: the head was altered; entries after 4'],
    [
      'a genuine head about another entry',
      { head: sealHead(macs, SCOPE, { sequence: 4, hash: c.hash }) },
      'head_altered 4: the head is about another entry 4',
    ],
    ['the head of another chain', { head: sealHead(macs, 'bravo', head) }, 'head_altered 5: the head was altered'],
    [
      'a head of a former secret',
      { head: sealHead(hmacKeyring([keyOf('former')]), SCOPE, head) },
      'unknown_key 5: the head was written under',
    ],
  ];
  for (const [description, changes, expected] of cases) {
    it(`is detected: ${description}`, () => {
      expect(describeFault({ ...intact, ...changes })).to.contain(expected);
    });
  }

  it('cannot be distinguished from a secret that is not configured', () => {
    const otherKeys = hmacKeyring([keyOf('another')]);
    expect(describeFault(intact, otherKeys)).to.contain('unknown_key 1: entry 1 was written under a MASTER_SECRET that is not configured');
    const bothKeys = hmacKeyring([keyOf('another'), keyOf('present')]);
    expect(describeFault(intact, bothKeys)).to.equal(undefined);
    const retiredKeys = hmacKeyring([keyOf('another')], [keyOf('present')]);
    expect(describeFault(intact, retiredKeys), 'a former secret seals no head').to.contain('unknown_key 5');
  });

  it('is not hidden by an entry with its own MAC', () => {
    for (const hash of ['', 'present.', 'present.x', `${a.hash}x`, b.hash]) {
      expect(describeFault({ ...intact, entries: [{ ...a, hash }, b, c, d] }), hash).to.match(/^(altered|unknown_key) 1/);
    }
  });

  for (const [description, previous, reason] of [
    ['a missing head', { head: undefined, lastSequence: 2 }, 'the head is missing'],
    ['an altered head', { head: { ...shorter.head, seal: 'present.x' }, lastSequence: 2 }, 'the head was altered'],
    [
      'a head of another secret',
      { head: { ...shorter.head, seal: 'other.x' }, lastSequence: 2 },
      'the head was written under another MASTER_SECRET',
    ],
    ['entries after the head', { head: shorter.head, lastSequence: 3 }, 'entries exist after the head'],
    ['entries removed from the end', { head: shorter.head, lastSequence: 1 }, 'the newest entries are missing'],
  ] as const) {
    it(`is recorded by the next writer: ${description}`, () => {
      const { entries, head } = extendChain(macs, SCOPE, previous, [addition('next')]);
      expect(entries.map(({ action }) => action)).to.deep.equal(['broken', 'changed']);
      const [breakEntry] = entries as [AuditEntry];
      expect(detailOf(breakEntry).changes).to.deep.equal([{ member: 'head', before: reason }]);
      expect(breakEntry.sequence, 'after all previous entries').to.equal(Math.max(2, previous.lastSequence) + 1);
      expect(head.sequence).to.equal(breakEntry.sequence + 1);
    });
  }

  it('is recorded when the service log is started a second time', () => {
    const { entries } = verifyOrRecordBreak(macs, SERVICE_SCOPE, { head: undefined, lastSequence: 0 }, AT);
    const [breakEntry] = entries as [AuditEntry];
    expect(detailOf(breakEntry).changes).to.deep.equal([{ member: 'head', before: 'all entries are missing' }]);
  });

  it('stays detectable after the chain was continued', () => {
    const withoutHead = { entries: shorter.entries, head: undefined };
    expect(describeFault(extend(withoutHead, 'c'))).to.equal('noted 3: before entry 3 the service found that the head is missing');
    const alteredHead = { entries: [...shorter.entries], head: { ...shorter.head, hash: 'x' } };
    expect(describeFault(extend(alteredHead, 'c'))).to.contain('altered 3');
    const forgedEntry = { ...c, action: 'broken' as const };
    expect(describeFault({ ...intact, entries: [a, b, forgedEntry, d] }), 'a forged break entry').to.contain('altered 3');
  });
});

const foreignKeys = hmacKeyring([{ id: 'k', key: createSecretKey(Buffer.alloc(32, 2)) }]);
const LENGTH = 2 * PIECE_ENTRIES + 500;
const CHANGE = { action: 'changed', kind: 'tenant', target: 'acme', changes: [] } as const;

let world: AdministrationWorld;

describe('audit log that is verified in portions', () => {
  const macs = hmacKeyring([{ id: 'k', key: createSecretKey(Buffer.alloc(32, 1)) }]);
  const AT = new Date('2026-06-01T00:00:00Z');
  const LONG_CHAIN = appendEntries(
    macs,
    ACME,
    { sequence: 0, hash: '' },
    Array.from({ length: LENGTH }, () => ({ by: SYSTEM, at: AT, change: CHANGE })),
  );
  const SERVICE_CHAIN = beginChain(macs, 0, AT);

  type Chain = { readonly entries: readonly AuditEntry[]; readonly head: AuditHead | undefined };

  /** A store with the chains of one tenant and of the service. */
  function storeOf(tenantChain: Chain, serviceChain: Chain = SERVICE_CHAIN): Store {
    const audit = ({ entries, head }: Chain) => ({
      head: async () => head,
      list: async ({ after = 0, limit, kind, action, target, ascending }: AuditQuery) => {
        const matches = entries.filter(
          (entry) =>
            (ascending ? entry.sequence > after : true) &&
            (kind ?? entry.kind) === entry.kind &&
            (action ?? entry.action) === entry.action &&
            (target ?? entry.target) === entry.target,
        );
        return (ascending ? matches : matches.toReversed()).slice(0, limit);
      },
    });
    const { store } = world;
    return {
      forService: (work: (repositories: object) => unknown) => work({ audit: audit(serviceChain) }),
      forTenant: async (id: typeof ACME, work: (repositories: object) => unknown) =>
        work({ audit: audit(tenantChain), tenant: { get: () => store.forTenant(id, ({ tenant }) => tenant.get()) } }),
    } as unknown as Store;
  }

  let admin: Caller;
  beforeEach(async () => {
    world = await anAdministration();
    admin = world.caller(['clients:manage']);
  });

  const verify = (store: Store, query: object = {}, by: Caller = admin) =>
    new VerifyChain({ store, auditMacs: { macs } }).execute(by, VerificationQuery.parse(query));
  /** Verifies portion by portion, like the console. */
  async function verifyAll(store: Store) {
    const seen: number[] = [];
    for (let cursor: string | undefined; ; ) {
      const piece = await verify(store, cursor === undefined ? {} : { cursor });
      seen.push(piece.verified);
      if (piece.status !== 'unfinished') return { ...piece, seen };
      ({ next: cursor } = piece);
    }
  }
  const withAltered = (...sequences: readonly number[]): Chain => ({
    ...LONG_CHAIN,
    entries: LONG_CHAIN.entries.map((entry) => (sequences.includes(entry.sequence) ? { ...entry, actor: 'attacker' } : entry)),
  });
  const withMissing = (...sequences: readonly number[]): Chain => ({
    ...LONG_CHAIN,
    entries: LONG_CHAIN.entries.filter(({ sequence }) => !sequences.includes(sequence)),
  });

  it('is intact after as many calls as it has portions, of the same length', async () => {
    const { status, seen, length, fault } = await verifyAll(storeOf(LONG_CHAIN));
    expect({ status, seen, length, fault }).to.deep.equal({
      status: 'whole',
      seen: [PIECE_ENTRIES, 2 * PIECE_ENTRIES, LENGTH],
      length: LENGTH,
      fault: undefined,
    });
  });

  const brokenChains: [string, () => Chain, readonly [string, number]][] = [
    ['an entry of the first piece was altered', () => withAltered(7), ['altered', 7]],
    ['two were altered, and the first is reported', () => withAltered(3_000, 4_000), ['altered', 3_000]],
    ['the last of a piece was altered', () => withAltered(PIECE_ENTRIES), ['altered', PIECE_ENTRIES]],
    ['the first of a piece was altered', () => withAltered(PIECE_ENTRIES + 1), ['altered', PIECE_ENTRIES + 1]],
    ['the first of the second piece is missing', () => withMissing(PIECE_ENTRIES + 1), ['removed', PIECE_ENTRIES + 1]],
    ['the last entry is missing', () => withMissing(LENGTH), ['truncated', LENGTH]],
    ['the head was altered', () => ({ ...LONG_CHAIN, head: sealHead(foreignKeys, ACME, LONG_CHAIN.head) }), ['head_altered', LENGTH + 1]],
    ['the head is missing', () => ({ ...LONG_CHAIN, head: undefined }), ['head_altered', LENGTH]],
    [
      'the head is an older head',
      () => ({ ...LONG_CHAIN, head: sealHead(macs, ACME, LONG_CHAIN.entries[99] as AuditEntry) }),
      ['head_outdated', 101],
    ],
  ];
  for (const [description, chain, [kind, sequence]] of brokenChains)
    it(`is broken where ${description}`, async () => {
      const { status, fault, next } = await verifyAll(storeOf(chain()));
      expect([status, fault?.kind, fault?.sequence, next]).to.deep.equal(['broken', kind, sequence, undefined]);
    });

  it('is broken where entries are removed between two calls', async () => {
    const { next } = await verify(storeOf(LONG_CHAIN));
    const shortChain = { entries: LONG_CHAIN.entries.slice(0, 10), head: sealHead(macs, ACME, LONG_CHAIN.entries[9] as AuditEntry) };
    const { status, fault } = await verify(storeOf(shortChain), { cursor: next });
    expect([status, fault?.kind, fault?.sequence]).to.deep.equal(['broken', 'truncated', 11]);
  });

  it('continues after pruned entries, also if more were pruned between two calls', async () => {
    const last = LONG_CHAIN.entries[2_999] as AuditEntry;
    const { sequence, hash } = last;
    const of = { tenantId: ACME, sequence, hash };
    const change = { action: 'pruned', kind: 'audit-log', target: ACME, changes: [] } as const;
    const pruned = appendEntries(macs, SERVICE_SCOPE, SERVICE_CHAIN.head, [{ by: SYSTEM, at: AT, change, of }]);
    const service = { entries: [...SERVICE_CHAIN.entries, ...pruned.entries], head: pruned.head };
    const remaining = { ...LONG_CHAIN, entries: LONG_CHAIN.entries.filter((entry) => entry.sequence > sequence) };
    expect((await verifyAll(storeOf(remaining, service))).status).to.equal('whole');
    const { next } = await verify(storeOf(LONG_CHAIN));
    const { status, verified } = await verify(storeOf(remaining, service), { cursor: next });
    expect([status, verified]).to.deep.equal(['whole', LENGTH]);
  });

  it('of the service is verified for tenant administrators, with a warning that only an operator can evaluate', async () => {
    const olderService = beginChain(macs, 3, AT);
    const { status, verified, warning } = await verify(storeOf(LONG_CHAIN, olderService), {}, ROOT);
    expect([status, verified]).to.deep.equal(['whole', 1]);
    expect(warning).to.match(/there were 3 tenants already/);
    expect((await verify(storeOf(LONG_CHAIN), { tenant: ACME }, ROOT)).verified).to.equal(PIECE_ENTRIES);
  });

  const rejections: [string, object, () => Caller, string][] = [
    ['another tenant', { tenant: 'other' }, () => admin, 'not_found'],
    ['an unknown tenant', { tenant: 'unknown' }, () => ROOT, 'not_found'],
    [
      'a client that is restricted to some credentials',
      {},
      () => world.caller(['clients:manage'], { allowedIssuanceConfigs: ['card'] }),
      'forbidden',
    ],
    ['an invalid cursor', { cursor: 'nonsense' }, () => admin, 'invalid_input cursor'],
    ['a cursor without a hash', { cursor: '5' }, () => admin, 'invalid_input cursor'],
  ];
  for (const [description, query, caller, outcome] of rejections)
    it(`is not verified for ${description}: ${outcome}`, async () => {
      expect(await outcomeOf(verify(storeOf(LONG_CHAIN), query, caller()))).to.equal(outcome);
    });

  it('rejects a cursor with a modified hash', async () => {
    const { status, fault } = await verify(storeOf(LONG_CHAIN), { cursor: '10.another-hash' });
    expect([status, fault?.kind, fault?.sequence]).to.deep.equal(['broken', 'altered', 11]);
  });
});

const DAY_MS = 86_400_000;
const NOW = new Date('2026-06-01T00:00:00Z');
const ago = (days: number) => new Date(NOW.getTime() - days * DAY_MS);

describe('audit log pruning', () => {
  const ACME = 'acme' as TenantId;
  const macs = hmacKeyring([{ id: 'k', key: createSecretKey(Buffer.alloc(32, 1)) }]);

  /** A log with one entry for each number of days before now. */
  function logOf(...days: readonly number[]): readonly AuditEntry[] {
    const change = { action: 'changed', kind: 'tenant', target: 'acme', changes: [] } as const;
    const additions = days.map((day) => ({ by: SYSTEM, at: ago(day), change }) as const);
    return appendEntries(macs, ACME, { sequence: 0, hash: '' }, additions).entries;
  }

  const error = sinon.fake();
  const prune = sinon.fake.resolves(undefined);
  const removed = sinon.fake.resolves(2);
  const oldLogs = sinon.fake.resolves([ACME]);
  beforeEach(() => [error, prune, removed, oldLogs].forEach((fake) => void fake.resetHistory()));

  const createPruning = (entries: readonly AuditEntry[], auditKeepDays?: number, now = NOW) => {
    const store = {
      maintenance: { oldAuditLogs: oldLogs, removeAuditEntries: removed },
      forService: (work: (repositories: object) => unknown) => work({ audit: { list: async () => [], prune } }),
      forTenant: (_id: string, work: (repositories: object) => unknown) => work({ audit: { list: async () => entries } }),
    } as unknown as Store;
    const settings = { auditKeepDays } as ServiceSettings;
    const log = { error } as unknown as Log;
    return new PruneAuditLog({ store, settings, log, clock: { now: () => now }, auditMacs: { macs } });
  };

  it('removes nothing unless it is configured', async () => {
    expect(await createPruning(logOf(99)).execute(NOW, 10)).to.deep.equal({ last: undefined, removed: 0 });
    expect(oldLogs.callCount).to.equal(0);
  });

  it('removes entries up to the last one that is old enough, and records the removal first', async () => {
    const entries = logOf(50, 40, 20, 45);
    expect(await createPruning(entries, 30).execute(NOW, 10)).to.deep.equal({ last: undefined, removed: 2 });
    const { sequence, hash } = entries[1] as AuditEntry;
    expect(prune.firstCall.args).to.deep.equal([ACME, { sequence, hash }]);
    expect(removed.firstCall.args).to.deep.equal([ACME, 2, ago(30)]);
    expect(prune.calledBefore(removed)).to.equal(true);
    expect(oldLogs.firstCall.args, 'once a day at most').to.deep.equal([ago(31), 10, undefined]);
  });

  it('uses the earlier of two clocks', async () => {
    await createPruning(logOf(50), 30).execute(new Date('2066-01-01T00:00:00Z'), 10);
    await createPruning(logOf(50), 30, new Date('2066-01-01T00:00:00Z')).execute(NOW, 10);
    expect(oldLogs.args.map(([before]) => before)).to.deep.equal([ago(31), ago(31)]);
  });

  it('leaves a tampered log unchanged, and reports it', async () => {
    const entries = logOf(50, 40).map((entry) => ({ ...entry, actor: 'attacker' }));
    expect((await createPruning(entries, 30).execute(NOW, 10)).removed).to.equal(0);
    expect([prune.callCount, removed.callCount]).to.deep.equal([0, 0]);
    expect(error.firstCall.args[1]).to.include({ tenantId: ACME, kind: 'altered' });
  });

  it('continues after the last entry of a full batch', async () => {
    expect((await createPruning(logOf(50), 30).execute(NOW, 1)).last).to.equal(ACME);
  });
});
