import fs from 'node:fs';
import { expect } from 'chai';
import sinon from 'sinon';
import { PinoLog } from '../../../adapters/system/pino-log.ts';

/** What Linux writes to a pipe in one piece (pipe(7), PIPE_BUF). */
const ONE_PIECE = 4096;

describe('the log of a process that shares its output with others', () => {
  it('is written in blocks of whole lines that no other can come into', async () => {
    const blocks: string[] = [];
    const write = sinon.stub(fs, 'write').callsFake(((_: number, text: Buffer, ...rest: unknown[]) => {
      blocks.push(String(text));
      const done = rest.at(-1) as (error: null, bytes: number) => void;
      setImmediate(() => done(null, text.length));
    }) as never);
    const log = new PinoLog({ level: 'info', version: '1', sharesOutput: true });
    try {
      for (let line = 0; line < 500; line++) log.info('request', { route: `/ö/${'x'.repeat(line % 300)}` });
      while (blocks.join('').split('\n').length < 480) await new Promise((done) => setImmediate(done));
    } finally {
      write.restore();
      sinon.stub(fs, 'writeSync').callsFake(((_: number, text: Buffer) => text.length) as never);
      log.close();
      sinon.restore();
    }
    expect(blocks.filter((block) => Buffer.byteLength(block) > ONE_PIECE)).to.deep.equal([]);
    expect(blocks.filter((block) => !block.startsWith('{') || !block.endsWith('}\n'))).to.deep.equal([]);
  });
});
