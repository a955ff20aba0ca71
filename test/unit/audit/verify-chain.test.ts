import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import { PIECE, VerificationQuery, VerifyChain } from '../../../application/audit/verify-chain.ts';
import type { Caller } from '../../../application/caller.ts';
import type { AuditQuery } from '../../../application/ports/repositories.ts';
import type { Store } from '../../../application/ports/store.ts';
import { type AuditEntry, SERVICE_SCOPE, SYSTEM } from '../../../domain/audit/audit-entry.ts';
import { type AuditHead, append, begin, sealHead } from '../../../domain/audit/chain.ts';
import { hmacs } from '../../../domain/audit/macs.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administration/kit.ts';
import { ACME, ROOT } from '../administration/world.ts';

const macs = hmacs([{ id: 'k', key: createSecretKey(Buffer.alloc(32, 1)) }]);
const strangers = hmacs([{ id: 'k', key: createSecretKey(Buffer.alloc(32, 2)) }]);
const LENGTH = 2 * PIECE + 500;
const AT = new Date('2026-06-01T00:00:00Z');
const CHANGE = { action: 'changed', kind: 'tenant', target: 'acme', changes: [] } as const;
const LONG = append(
  macs,
  ACME,
  { sequence: 0, hash: '' },
  Array.from({ length: LENGTH }, () => ({ by: SYSTEM, at: AT, change: CHANGE })),
);
const SERVICE = begin(macs, 0, AT);

type Chain = { readonly entries: readonly AuditEntry[]; readonly head: AuditHead | undefined };

/** Reads as a store does, by the two chains that there are. */
function storeOf(own: Chain, service: Chain = SERVICE): Store {
  const audit = ({ entries, head }: Chain) => ({
    head: async () => head,
    list: async ({ after = 0, limit, kind, action, target, ascending }: AuditQuery) => {
      const found = entries.filter(
        (entry) =>
          (ascending ? entry.sequence > after : true) &&
          (kind ?? entry.kind) === entry.kind &&
          (action ?? entry.action) === entry.action &&
          (target ?? entry.target) === entry.target,
      );
      return (ascending ? found : found.toReversed()).slice(0, limit);
    },
  });
  const { store } = world;
  return {
    forService: (work: (all: object) => unknown) => work({ audit: audit(service) }),
    forTenant: async (id: typeof ACME, work: (all: object) => unknown) =>
      work({
        audit: audit(own),
        tenant: { get: () => store.forTenant(id, ({ tenant }) => tenant.get()) },
      }),
  } as unknown as Store;
}

let world: AdministrationWorld;

describe('The audit log, verified piece by piece', () => {
  let admin: Caller;
  beforeEach(async () => {
    world = await anAdministration();
    admin = world.caller(['clients:manage']);
  });

  const verify = (store: Store, query: object = {}, by: Caller = admin) =>
    new VerifyChain({ store, auditCodes: { macs } }).execute(by, VerificationQuery.parse(query));
  /** As whoever presses the button gets it. */
  async function toTheEnd(store: Store) {
    const seen: number[] = [];
    for (let cursor: string | undefined; ; ) {
      const piece = await verify(store, cursor === undefined ? {} : { cursor });
      seen.push(piece.verified);
      if (piece.status !== 'unfinished') return { ...piece, seen };
      ({ next: cursor } = piece);
    }
  }
  const altered = (...sequences: readonly number[]): Chain => ({
    ...LONG,
    entries: LONG.entries.map((entry) =>
      sequences.includes(entry.sequence) ? { ...entry, actor: 'somebody' } : entry,
    ),
  });
  const without = (...sequences: readonly number[]): Chain => ({
    ...LONG,
    entries: LONG.entries.filter(({ sequence }) => !sequences.includes(sequence)),
  });

  it('is whole after as many calls as it has pieces, each no longer than the others', async () => {
    const { status, seen, length, fault } = await toTheEnd(storeOf(LONG));
    expect({ status, seen, length, fault }).to.deep.equal({
      status: 'whole',
      seen: [PIECE, 2 * PIECE, LENGTH],
      length: LENGTH,
      fault: undefined,
    });
  });

  const broken: [string, () => Chain, readonly [string, number]][] = [
    ['an entry of the first piece was altered', () => altered(7), ['altered', 7]],
    ['two were altered: the first is told', () => altered(3_000, 4_000), ['altered', 3_000]],
    ['the last of a piece was altered', () => altered(PIECE), ['altered', PIECE]],
    ['the first of a piece was altered', () => altered(PIECE + 1), ['altered', PIECE + 1]],
    ['one at the seam of two pieces is missing', () => without(PIECE + 1), ['removed', PIECE + 1]],
    ['the last one is missing', () => without(LENGTH), ['truncated', LENGTH]],
    [
      'the head was altered',
      () => ({ ...LONG, head: sealHead(strangers, ACME, LONG.head) }),
      ['head_altered', LENGTH + 1],
    ],
    ['the head is missing', () => ({ ...LONG, head: undefined }), ['head_altered', LENGTH]],
    [
      'the head is an older one',
      () => ({ ...LONG, head: sealHead(macs, ACME, LONG.entries[99] as AuditEntry) }),
      ['head_outdated', 101],
    ],
  ];
  for (const [what, chain, [kind, sequence]] of broken)
    it(`is broken where ${what}`, async () => {
      const { status, fault, next } = await toTheEnd(storeOf(chain()));
      expect([status, fault?.kind, fault?.sequence, next]).to.deep.equal([
        'broken',
        kind,
        sequence,
        undefined,
      ]);
    });

  it('is broken where entries go between two calls', async () => {
    const { next } = await verify(storeOf(LONG));
    const short = {
      entries: LONG.entries.slice(0, 10),
      head: sealHead(macs, ACME, LONG.entries[9] as AuditEntry),
    };
    const { status, fault } = await verify(storeOf(short), { cursor: next });
    expect([status, fault?.kind, fault?.sequence]).to.deep.equal(['broken', 'truncated', 11]);
  });

  it('goes on behind what is kept no longer, also where that grew between two calls', async () => {
    const last = LONG.entries[2_999] as AuditEntry;
    const { sequence, hash } = last;
    const of = { tenantId: ACME, sequence, hash };
    const change = { action: 'pruned', kind: 'audit-log', target: ACME, changes: [] } as const;
    const pruned = append(macs, SERVICE_SCOPE, SERVICE.head, [{ by: SYSTEM, at: AT, change, of }]);
    const service = { entries: [...SERVICE.entries, ...pruned.entries], head: pruned.head };
    const left = { ...LONG, entries: LONG.entries.filter((entry) => entry.sequence > sequence) };
    expect((await toTheEnd(storeOf(left, service))).status).to.equal('whole');
    const { next } = await verify(storeOf(LONG));
    const { status, verified } = await verify(storeOf(left, service), { cursor: next });
    expect([status, verified]).to.deep.equal(['whole', LENGTH]);
  });

  it('is that of the service for who manages tenants, with what only an operator can judge', async () => {
    const old = begin(macs, 3, AT);
    const { status, verified, warning } = await verify(storeOf(LONG, old), {}, ROOT);
    expect([status, verified]).to.deep.equal(['whole', 1]);
    expect(warning).to.match(/there were 3 tenants already/);
    expect((await verify(storeOf(LONG), { tenant: ACME }, ROOT)).verified).to.equal(PIECE);
  });

  const refusals: [string, object, () => Caller, string][] = [
    ['another tenant', { tenant: 'other' }, () => admin, 'not_found'],
    ['a tenant that is not there', { tenant: 'nobody' }, () => ROOT, 'not_found'],
    [
      'a client that is restricted to some credentials',
      {},
      () => world.caller(['clients:manage'], { allowedIssuanceConfigs: ['card'] }),
      'forbidden',
    ],
    ['a cursor that nobody was given', { cursor: 'nonsense' }, () => admin, 'invalid_input cursor'],
    ['a cursor without a hash', { cursor: '5' }, () => admin, 'invalid_input cursor'],
  ];
  for (const [what, query, by, end] of refusals)
    it(`is refused to ${what}: ${end}`, async () => {
      expect(await endOf(verify(storeOf(LONG), query, by()))).to.equal(end);
    });

  it('believes no cursor with a hash of somebody else', async () => {
    const { status, fault } = await verify(storeOf(LONG), { cursor: '10.somebody-elses' });
    expect([status, fault?.kind, fault?.sequence]).to.deep.equal(['broken', 'altered', 11]);
  });
});
