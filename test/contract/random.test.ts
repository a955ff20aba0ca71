import { expect } from 'chai';
import { NodeRandom } from '../../adapters/system/random.ts';

describe('NodeRandom', () => {
  it('gives as many bytes as asked for', () => {
    const random = new NodeRandom();
    for (const length of [0, 1, 16, 1023, 1024, 1025, 20_000])
      expect(random.bytes(length)).to.have.length(length);
  });

  it('makes base64url tokens of the wanted strength', () => {
    const random = new NodeRandom();
    expect(random.token()).to.match(/^[\w-]{22}$/);
    expect(random.token(192)).to.match(/^[\w-]{32}$/);
    expect(random.token(256)).to.match(/^[\w-]{43}$/);
  });

  it('never gives the same bytes twice, across many fillings of its pool', () => {
    const random = new NodeRandom();
    const seen = new Set<string>();
    for (let i = 0; i < 2000; i++) {
      seen.add(random.bytes(i % 2 === 0 ? 16 : 1_000).toString('hex'));
      seen.add(Buffer.from(random.token(), 'base64url').toString('hex'));
    }
    expect(seen.size).to.equal(4000);
    expect(seen.has('00'.repeat(16))).to.equal(false);
  });

  it('keeps its hands off bytes that it gave away', () => {
    const random = new NodeRandom();
    const given = random.bytes(32);
    const copy = Buffer.from(given);
    for (let i = 0; i < 500; i++) random.bytes(200);
    expect(given).to.deep.equal(copy);
  });
});
