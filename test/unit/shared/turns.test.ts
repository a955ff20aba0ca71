import { expect } from 'chai';
import { Failure } from '../../../domain/shared/failure.ts';
import { Turns } from '../../../domain/shared/turns.ts';

/** Work that ends when it is told to, and notes when it begins. */
function work(name: string, begun: string[]) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const run = () => {
    begun.push(name);
    return promise;
  };
  return { run, end: () => resolve(name), fail: () => reject(new Error(name)) };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Work on one thing', () => {
  it('is done one after the other, also by who comes while the last one is at it', async () => {
    const begun: string[] = [];
    const turns = new Turns(5);
    const [a, b, c] = ['a', 'b', 'c'].map((name) => work(name, begun)) as [
      ReturnType<typeof work>,
      ReturnType<typeof work>,
      ReturnType<typeof work>,
    ];
    const first = turns.take('key', a.run);
    const second = turns.take('key', b.run);
    a.end();
    expect(await first).to.equal('a');
    const third = turns.take('key', c.run);
    await settle();
    expect(begun).to.deep.equal(['a', 'b']);
    b.end();
    c.end();
    expect(await Promise.all([second, third])).to.deep.equal(['b', 'c']);
  });

  it('goes on when the one before failed, and does not wait for work on another thing', async () => {
    const begun: string[] = [];
    const turns = new Turns(5);
    const [a, b] = [work('a', begun), work('b', begun)];
    const failing = turns.take('key', a.run).catch((error: Error) => error.message);
    const waiting = turns.take('key', b.run);
    expect(await turns.take('other', async () => 'done')).to.equal('done');
    a.fail();
    b.end();
    expect([await failing, await waiting]).to.deep.equal(['a', 'b']);
  });

  it('is refused when too many want it', async () => {
    const turns = new Turns(2);
    const begun: string[] = [];
    const [a, b] = [work('a', begun), work('b', begun)];
    const both = [turns.take('key', a.run), turns.take('key', b.run)];
    const refused = await turns.take('key', async () => 'c').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Failure).and.to.have.property('code', 'unavailable');
    a.end();
    b.end();
    await Promise.all(both);
    expect(await turns.take('key', async () => 'c'), 'later').to.equal('c');
  });
});
