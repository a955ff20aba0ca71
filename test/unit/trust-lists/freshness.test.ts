import { expect } from 'chai';
import { checkJump } from '../../../domain/trust-lists/freshness.ts';

const NOW = new Date('2026-12-31T23:59:59Z');
const HOUR_MS = 3_600_000;

/** What becomes of a number that follows another, which was seen so many hours before. */
function jump(before: number | undefined, next: number, hours = 1): string {
  const seenAt = new Date(NOW.getTime() - hours * HOUR_MS);
  const seen = before === undefined ? undefined : { sequenceNumber: before, contentHash: 'x', seenAt };
  try {
    checkJump(seen, { sequenceNumber: next, contentHash: 'y' }, NOW);
    return 'taken';
  } catch (error) {
    return (error as Error).message.split(':')[0] ?? '';
  }
}

describe('numbers of trust lists', () => {
  for (const [what, before, next, hours] of [
    ['the next one', 7, 8, 0],
    ['some that were missed', 7, 900, 0],
    ['seconds since 1970', 1_798_700_000, 1_798_703_600, 1],
    ['milliseconds since 1970', 1_798_700_000_000, 1_798_703_600_000, 1],
    ['a date', 20261230, 20261231, 24],
    ['a date over the end of the year', 20261231, 20270101, 1],
    ['a date with a count', 2026123101, 2027010101, 1],
    ['date and time of day', 20261231235958, 20270101000001, 0],
    ['counting, then dates', 12, 20261231, 1],
    ['a first one that counts milliseconds', undefined, 1_798_703_600_000, 0],
    ['a first one made of a date and milliseconds', undefined, 202612312359591, 0],
  ] as const) {
    it(`may be ${what}`, () => expect(jump(before, next, hours)).to.equal('taken'));
  }

  for (const [what, before, next, hours] of [
    ['near the end', 7, Number.MAX_SAFE_INTEGER, 1],
    ['near the end after years', 7, Number.MAX_SAFE_INTEGER, 50_000],
    ['near the end at first', undefined, Number.MAX_SAFE_INTEGER, 1],
    ['of dates that have not come', 20261231, 20991231, 0],
    ['of no date', 20261231, 20269999, 0],
    ['of a million at once', 7, 1_000_000, 0],
  ] as const) {
    it(`may not be ${what}`, () => expect(jump(before, next, hours)).to.equal('sequence_jumped'));
  }
});
