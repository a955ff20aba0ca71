import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import {
  type Actor,
  type AuditChange,
  type AuditEntry,
  detailOf,
  nameOf,
  SERVICE_SCOPE,
} from '../../../domain/audit/audit-entry.ts';
import { type AuditHead, append, begin, extend, sealHead, settle } from '../../../domain/audit/chain.ts';
import { checkEnd, checkEntries, START } from '../../../domain/audit/check-chain.ts';
import { hmacs, type MacKey } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';

const SCOPE = 'acme';
const AT = new Date('2027-01-15T08:00:00Z');
const keyOf = (id: string): MacKey => ({ id, key: createSecretKey(Buffer.alloc(32, id)) });
const macs = hmacs([keyOf('present')]);

const change = (target: string): AuditChange => ({ action: 'changed', kind: 'client', target, changes: [] });
const noted = (target: string, by: Actor = 'system') => ({ by, at: AT, change: change(target) });

type Chain = { readonly entries: readonly AuditEntry[]; readonly head: AuditHead };

/** What a writer makes of a chain with these entries and this head. */
function extended(
  { entries, head }: { entries: readonly AuditEntry[]; head: AuditHead | undefined },
  ...targets: string[]
): Chain {
  const found = { head, lastSequence: entries.at(-1)?.sequence ?? 0 };
  const added = extend(
    macs,
    SCOPE,
    found,
    targets.map((target) => noted(target)),
  );
  return { entries: [...entries, ...added.entries], head: added.head };
}

const chainOf = (...targets: string[]) => extended({ entries: [], head: undefined }, ...targets);

/** What a walk over a chain finds first: the fault of an entry, else that of the end. */
function faultOf(
  { entries, head }: { entries: readonly AuditEntry[]; head: AuditHead | undefined },
  verifier = macs,
  scope = SCOPE,
) {
  const { progress, fault } = checkEntries(verifier, scope, START, entries);
  return fault ?? checkEnd(verifier, scope, progress, head);
}

const briefly = (...walk: Parameters<typeof faultOf>) => {
  const fault = faultOf(...walk);
  return fault && `${fault.kind} ${fault.sequence}: ${fault.message}`;
};

describe('A chain of the audit log', () => {
  it('is whole as it was written, at once and in steps', () => {
    expect(faultOf(chainOf('a', 'b', 'c'))).to.equal(undefined);
    expect(faultOf(extended(extended(chainOf('a'), 'b'), 'c', 'd'))).to.equal(undefined);
    expect(chainOf('a', 'b').entries.map(({ sequence }) => sequence)).to.deep.equal([1, 2]);
  });

  it('need not be there for a tenant, and always is for the service', () => {
    const nothing = { entries: [], head: undefined };
    expect(faultOf(nothing)).to.equal(undefined);
    expect(faultOf(nothing, macs, SERVICE_SCOPE)).to.include({ sequence: 1, kind: 'removed' });
    expect(faultOf(begin(macs, 2, AT), macs, SERVICE_SCOPE)).to.equal(undefined);
    const settled = settle(macs, SCOPE, { head: undefined, lastSequence: 0 }, AT);
    expect(settled.entries).to.deep.equal([]);
    expect(faultOf(settled), 'a head without entries').to.equal(undefined);
  });

  it('is extended by something', () => {
    expect(() => chainOf()).to.throw('Nothing is no addition.');
  });

  it('says who asked for what, in which request', () => {
    const by = { clientId: 'admin', tenantId: SCOPE as TenantId, requestId: 'r-1' };
    const { entries } = extend(macs, SCOPE, { head: undefined, lastSequence: 0 }, [
      noted('a', by),
      noted('b'),
    ]);
    expect(entries.map(({ actor }) => actor)).to.deep.equal(['admin', 'system']);
    expect(entries.map((entry) => detailOf(entry).requestId)).to.deep.equal(['r-1', undefined]);
  });

  for (const [clientId, name] of [
    ['admin', 'admin'],
    ['system', 'client system'],
    ['client system', 'client client system'],
    ['clients', 'clients'],
  ] as const) {
    it(`tells the service from a client called "${clientId}"`, () => {
      expect(nameOf({ clientId, tenantId: null })).to.equal(name);
    });
  }
});

describe('What somebody did to a chain of the audit log', () => {
  const whole = chainOf('a', 'b', 'c', 'd');
  const [a, b, c, d] = whole.entries as [AuditEntry, AuditEntry, AuditEntry, AuditEntry];
  const { head } = whole;
  const altered = { ...b, target: 'x' };
  const shorter = chainOf('a', 'b');
  const unlinked = append(macs, SCOPE, { sequence: 1, hash: '' }, [noted('b')]);
  const cases: readonly (readonly [
    string,
    Partial<{ entries: AuditEntry[]; head: AuditHead | undefined }>,
    string,
  ])[] = [
    [
      'an entry that was altered',
      { entries: [a, altered, c, d] },
      'altered 2: entry 2 was altered or put there',
    ],
    [
      'an entry that was made earlier than it says',
      { entries: [a, { ...b, at: new Date(0) }, c, d] },
      'altered 2',
    ],
    ['an entry taken from the middle', { entries: [a, c, d] }, 'removed 2: entry 2 is missing'],
    ['an entry that follows nothing', { entries: [a, ...unlinked.entries] }, 'altered 2'],
    [
      'two entries taken from the middle',
      { entries: [a, d] },
      'removed 2: entry 2 and all up to 3 are missing',
    ],
    ['the first entry taken away', { entries: [b, c, d] }, 'removed 1: entry 1 is missing'],
    [
      'an entry taken away and those after it counted anew',
      { entries: [a, { ...c, sequence: 2 }, { ...d, sequence: 3 }] },
      'altered 2: entry 2 was altered or put there by somebody else, or one before it was taken away',
    ],
    [
      'two entries that changed places',
      { entries: [a, { ...c, sequence: 2 }, { ...b, sequence: 3 }, d] },
      'reordered 2: entry 2 stood in another place',
    ],
    ['the last entry taken away', { entries: [a, b, c] }, 'truncated 4: entry 4 is missing at the end'],
    [
      'more taken off the end',
      { entries: [a] },
      'truncated 2: entry 2 and all up to 4 are missing at the end',
    ],
    [
      'all entries taken away',
      { entries: [] },
      'truncated 1: entry 1 and all up to 4 are missing at the end',
    ],
    ['no head', { head: undefined }, 'head_altered 4: the head of the chain is missing'],
    [
      'a head of another end',
      { head: { ...head, hash: a.hash } },
      'head_altered 5: the head was altered; entries after 4',
    ],
    [
      'a genuine head about another entry',
      { head: sealHead(macs, SCOPE, { sequence: 4, hash: c.hash }) },
      'head_altered 4: the head is about another entry 4',
    ],
    [
      'the head of another chain',
      { head: sealHead(macs, 'bravo', head) },
      'head_altered 5: the head was altered',
    ],
    [
      'a head of a former secret',
      { head: sealHead(hmacs([keyOf('former')]), SCOPE, head) },
      'unknown_key 5: the head was made under',
    ],
  ];
  for (const [what, changes, found] of cases) {
    it(`is found: ${what}`, () => {
      expect(briefly({ ...whole, ...changes })).to.contain(found);
    });
  }

  it('is not told from a secret that is not configured', () => {
    const other = hmacs([keyOf('another')]);
    expect(briefly(whole, other)).to.contain(
      'unknown_key 1: entry 1 was made under a MASTER_SECRET that is not configured',
    );
    const both = hmacs([keyOf('another'), keyOf('present')]);
    expect(briefly(whole, both)).to.equal(undefined);
    const retired = hmacs([keyOf('another')], [keyOf('present')]);
    expect(briefly(whole, retired), 'a former secret seals no head').to.contain('unknown_key 5');
  });

  it('is not hidden by an entry with a code of its own', () => {
    for (const hash of ['', 'present.', 'present.x', `${a.hash}x`, b.hash]) {
      expect(briefly({ ...whole, entries: [{ ...a, hash }, b, c, d] }), hash).to.match(
        /^(altered|unknown_key) 1/,
      );
    }
  });

  for (const [what, found, said] of [
    ['a head that is gone', { head: undefined, lastSequence: 2 }, 'the head is missing'],
    [
      'a head that was altered',
      { head: { ...shorter.head, seal: 'present.x' }, lastSequence: 2 },
      'the head was altered',
    ],
    [
      'a head of another secret',
      { head: { ...shorter.head, seal: 'other.x' }, lastSequence: 2 },
      'the head is under another MASTER_SECRET',
    ],
    ['entries after the head', { head: shorter.head, lastSequence: 3 }, 'there are entries after the head'],
    ['entries taken off the end', { head: shorter.head, lastSequence: 1 }, 'the newest entries are missing'],
  ] as const) {
    it(`is said by whoever writes next: ${what}`, () => {
      const { entries, head } = extend(macs, SCOPE, found, [noted('next')]);
      expect(entries.map(({ action }) => action)).to.deep.equal(['broken', 'changed']);
      const [broken] = entries as [AuditEntry];
      expect(detailOf(broken).changes).to.deep.equal([{ member: 'head', before: said }]);
      expect(broken.sequence, 'after all that there was').to.equal(Math.max(2, found.lastSequence) + 1);
      expect(head.sequence).to.equal(broken.sequence + 1);
    });
  }

  it('is said by whoever begins the log of the service a second time', () => {
    const { entries } = settle(macs, SERVICE_SCOPE, { head: undefined, lastSequence: 0 }, AT);
    const [broken] = entries as [AuditEntry];
    expect(detailOf(broken).changes).to.deep.equal([{ member: 'head', before: 'all entries are missing' }]);
  });

  it('stays found after somebody went on with the chain', () => {
    const without = { entries: shorter.entries, head: undefined };
    expect(briefly(extended(without, 'c'))).to.equal(
      'noted 3: before entry 3 the service found that the head is missing',
    );
    const altered = { entries: [...shorter.entries], head: { ...shorter.head, hash: 'x' } };
    expect(briefly(extended(altered, 'c'))).to.contain('altered 3');
    const forged = { ...c, action: 'broken' as const };
    expect(briefly({ ...whole, entries: [a, b, forged, d] }), 'made by nobody').to.contain('altered 3');
  });
});
