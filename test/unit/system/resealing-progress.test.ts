import { expect } from 'chai';
import { progressOf } from '../../../bootstrap/commands/reseal.ts';

describe('progress of npm run reseal', () => {
  const cases: readonly (readonly [done: number, pending: number, told: string])[] = [
    [0, 3, '0 of 3 resealed'],
    [1, 3, '1 of 3 resealed'],
    [3, 3, '3 of 3 resealed'],
    // Values within a row and concurrent writes of a service were not counted.
    [1, 0, '1 resealed'],
    [5, 3, '5 resealed'],
  ];
  for (const [done, pending, expected] of cases)
    it(`is "${expected}" for ${done} of ${pending} counted rows`, () => {
      expect(progressOf(done, pending)).to.equal(expected);
    });
});
