import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const LOG = fileURLToPath(new URL('../../adapters/system/pino-log.ts', import.meta.url));
const PROGRAM = `
  const { PinoLog } = await import(${JSON.stringify(LOG)});
  const log = new PinoLog({ level: 'info', version: '1' });
  process.on('message', async () => {
    for (let line = 0; line < 1000; line++) log.info('a line');
    await log.close();
    process.exit(0);
  });
  process.send('ready');
`;

describe('log of a process whose output has no reader any more', () => {
  it('does not prevent the end of the process', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    try {
      await once(child, 'message');
      child.stdout?.destroy();
      child.send('end');
      const [code] = await once(child, 'exit');
      expect(code).to.equal(0);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
