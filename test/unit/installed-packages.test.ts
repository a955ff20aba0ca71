import { readFileSync } from 'node:fs';
import { expect } from 'chai';

type Locked = { readonly optional?: boolean; readonly engines?: { readonly node?: string } };

/** The oldest Node that the README promises to begin with; the pinned one comes with the packages. */
const OLDEST = 20;

describe('installed packages', () => {
  /** npm leaves out an optional package, without a word, that asks for a newer Node than the one npm itself runs on. */
  it('are the same for every Node version that installs them', () => {
    const lock = readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8');
    const { packages } = JSON.parse(lock) as { packages: Record<string, Locked> };
    const leftOut = Object.entries(packages).filter(([, { optional, engines }]) => optional && oldestOf(engines?.node ?? '*') > OLDEST);
    expect(leftOut.map(([name]) => name)).to.deep.equal([]);
  });
});

/** The first major version that a range of versions names; 0 where it names none. */
function oldestOf(range: string): number {
  return Number(/\d+/.exec(range)?.[0] ?? 0);
}
