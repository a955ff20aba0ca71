import { readFileSync } from 'node:fs';
import { expect } from 'chai';

type Locked = { readonly optional?: boolean; readonly engines?: { readonly node?: string } };

/** The oldest Node version in the README. The packages include the pinned version. */
const MIN_NODE = 20;

describe('installed packages', () => {
  /** npm silently skips optional packages that require a newer Node than npm itself runs on. */
  it('are the same for every Node version that installs them', () => {
    const lock = readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8');
    const { packages } = JSON.parse(lock) as { packages: Record<string, Locked> };
    const skipped = Object.entries(packages).filter(([, { optional, engines }]) => optional && oldestOf(engines?.node ?? '*') > MIN_NODE);
    expect(skipped.map(([name]) => name)).to.deep.equal([]);
  });
});

/** Returns the first major version of a range, or 0 if it has none. */
function oldestOf(range: string): number {
  return Number(/\d+/.exec(range)?.[0] ?? 0);
}
