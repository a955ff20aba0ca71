import { expect } from 'chai';
import fc from 'fast-check';
import { lifeTimeWithin } from '../../../domain/issuance/credential.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { readAttestedStatuses } from '../../../domain/status-lists/attested-status.ts';
import { ENTRY_BITS, packEntries } from '../../../domain/status-lists/bits.ts';
import { distinctStatuses, endOfStatuses, revokedFrom } from '../../../domain/status-lists/wallet-status.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const SECONDS = NOW.getTime() / 1000;
const URI = 'https://provider.example/status/1';
const status = (changes: object = {}) => ({ uri: URI, idx: 1, anchor: 'a', ...changes });

describe('What an attestation says of its status', () => {
  const list = { status_list: { idx: 4, uri: URI } };

  it('stands in any of three places', () => {
    const payload = {
      status: list,
      client_status: { status: list, exp: SECONDS + 1 },
      key_storage_status: { status: list },
    };
    const reference = { idx: 4, uri: URI };
    expect(readAttestedStatuses(payload, NOW)).to.deep.equal([
      { place: 'status', reference },
      { place: 'client_status', reference, keptUntil: SECONDS + 1 },
      { place: 'key_storage_status', reference },
    ]);
    expect(readAttestedStatuses({}, NOW)).to.deep.equal([]);
  });

  it('names the member that is broken', () => {
    const reasonOf = (payload: object) => {
      try {
        readAttestedStatuses({ ...payload } as never, NOW);
        return 'read';
      } catch (error) {
        return error instanceof Refusal ? error.message : error;
      }
    };
    expect(reasonOf({ client_status: {} })).to.equal('status_invalid: client_status: has no status');
    expect(reasonOf({ key_storage_status: { status: {} } })).to.equal(
      'status_invalid: key_storage_status: no status_list',
    );
    expect(reasonOf({ status: 1 })).to.equal('status_invalid: status: no status_list');
    expect(reasonOf({ client_status: { status: list, exp: SECONDS } })).to.equal(
      'status_invalid: client_status: exp has passed',
    );
    expect(reasonOf({ client_status: { status: list, exp: null } })).to.equal(
      'status_invalid: client_status: exp is no time',
    );
  });

  it('is read or refused, whatever it is', () => {
    const member = fc.oneof(
      fc.jsonValue(),
      fc.record({ status: fc.oneof(fc.jsonValue(), fc.constant(list)), exp: fc.jsonValue() }),
    );
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('status', 'client_status', 'key_storage_status'), member),
        (payload) => {
          try {
            readAttestedStatuses(payload as never, NOW);
          } catch (error) {
            expect(error).to.be.instanceOf(Refusal);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('The end of what follows a wallet', () => {
  it('is the first of those that its provider names', () => {
    expect(endOfStatuses([status(), status({ keptUntil: 20 }), status({ keptUntil: 10 })])).to.deep.equal(
      new Date(10_000),
    );
    expect(endOfStatuses([status()])).to.equal(undefined);
  });

  it('is a time, whatever the provider names, and never later than it', () => {
    fc.assert(
      fc.property(fc.double({ min: SECONDS + 1, noNaN: true, noDefaultInfinity: true }), (keptUntil) => {
        const end = endOfStatuses([status({ keptUntil })]);
        const lifeTime = lifeTimeWithin(NOW, undefined, end) ?? 0;
        expect(lifeTime).to.satisfy(Number.isSafeInteger).and.to.be.greaterThan(0);
        expect(SECONDS + lifeTime).to.be.lessThan(Math.max(keptUntil, SECONDS + 1.5));
        expect(lifeTimeWithin(NOW, 60, end)).to.be.at.most(60);
      }),
    );
  });

  it('counts once for each entry, by its first end', () => {
    const all = [
      status({ keptUntil: 20 }),
      status(),
      status({ keptUntil: 10 }),
      status({ idx: 2 }),
      status({ anchor: 'b' }),
    ];
    expect(distinctStatuses(all)).to.have.deep.members([
      status({ keptUntil: 10 }),
      status({ idx: 2 }),
      status({ anchor: 'b' }),
    ]);
  });
});

describe('The revoked entries of a list', () => {
  it('are found in their order, a few at a time, and no others', () => {
    const entries = fc.uniqueArray(fc.record({ index: fc.nat(999), status: fc.nat(3) }), {
      selector: ({ index }) => index,
    });
    fc.assert(
      fc.property(
        fc.constantFrom(...ENTRY_BITS),
        entries,
        fc.integer({ min: 1, max: 7 }),
        (bits, all, limit) => {
          const fitting = all.filter((entry) => entry.status < 1 << bits);
          const bytes = packEntries(bits, 1_000, fitting);
          const expected = fitting
            .filter((entry) => entry.status === 1)
            .map(({ index }) => index)
            .sort((a, b) => a - b);
          const found: number[] = [];
          for (let from = 0; ; ) {
            const page = revokedFrom(bytes, bits, from, limit);
            expect(page.length).to.be.at.most(limit);
            found.push(...page);
            if (page.length < limit) break;
            from = (page.at(-1) ?? 0) + 1;
          }
          expect(found).to.deep.equal(expected);
        },
      ),
      { numRuns: 200 },
    );
  });
});
