import { spawnSync } from 'node:child_process';
import { expect } from 'chai';

const MODULE = new URL('../../bootstrap/start/after-start.ts', import.meta.url).href;
/** Objects of half a megabyte that stay alive until the end. */
const PROGRAM = `
  import { settleAfterStart } from ${JSON.stringify(MODULE)};
  const held = Array.from({ length: 60 }, (_, index) => new Array(65_536).fill(index));
  settleAfterStart();
  setTimeout(() => { for (let time = 0; time < 3; time++) gc(); console.error(held.length); }, 600);
`;

/** The allowed growth of the old generation after the last full collection, as a share of the live objects. */
function growth(): { readonly part: number; readonly errors: string } {
  const options = ['--expose-gc', '--trace-gc', '--trace-gc-nvp', '--max-semi-space-size=8'];
  const node = spawnSync(process.execPath, [...options, '--input-type=module', '-e', PROGRAM], { encoding: 'utf8', timeout: 20_000 });
  const lastCollection = node.stdout.split('\n').findLast((line) => line.includes(' gc=mc ')) ?? '';
  const traceField = (name: string) => Number(new RegExp(` ${name}=(\\d+)`).exec(lastCollection)?.[1]);
  const alive = traceField('end_object_size');
  return { part: (traceField('old_gen_allocation_limit') - traceField('new_space_capacity') - alive) / alive, errors: node.stderr };
}

describe('V8 flags set after the start', () => {
  it('are accepted, and let old objects grow by the configured share', () => {
    const { part, errors } = growth();
    expect(errors.trim()).to.equal('60');
    expect(part).to.be.within(0.55, 0.65);
  });
});
