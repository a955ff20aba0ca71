import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { hangs, PlantedRefusal, readPlanted, takesTooMuch, throwsUndeclared } from './decoders.ts';

const expected = isInstanceOfAny(PlantedRefusal);
const seeds = ['{"token":"eyJhIjoxfQ"}'];

/** Targets for the tests of the engine. */
export const TARGETS: readonly Target[] = [
  { name: 'undeclared', expected, seeds: ['abcdef'], dictionary: [], decode: throwsUndeclared },
  { name: 'hanging', expected, seeds, dictionary: [], decode: hangs },
  {
    name: 'trusting',
    expected,
    seeds,
    dictionary: ['root'],
    decode: (bytes) => ensure(!takesTooMuch(bytes).admin, 'nobody is an administrator'),
  },
  { name: 'sound', expected, seeds, dictionary: [], decode: readPlanted },
];
