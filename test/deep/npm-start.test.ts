import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { bareEnvironment } from '../support/compile-cache.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

async function answers(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health/live`)).ok;
  } catch {
    return false;
  }
}

describe('npm start', () => {
  it('ends the service before npm when npm alone gets SIGTERM', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-npm-start-'));
    const port = await freePort(createServer);
    const address = `http://localhost:${port}`;
    const environment = { HOME: folder, DATA_FOLDER: folder, PORT: String(port), DRAIN_SECONDS: '0' };
    // A group of its own, so that the signal reaches npm and no other process.
    const npm = spawn('npm', ['start'], {
      cwd: ROOT,
      env: { ...bareEnvironment(), ...environment },
      stdio: 'ignore',
      detached: true,
    });
    const ended = new Promise((resolve) => npm.once('exit', resolve));
    try {
      while (!(await answers(address))) {
        expect(npm.exitCode, 'npm start has ended').to.equal(null);
        await setTimeout(50);
      }
      npm.kill('SIGTERM');
      await ended;
      expect(await answers(address)).to.equal(false);
    } finally {
      try {
        process.kill(-(npm.pid ?? 0), 'SIGKILL');
      } catch {
        // All of them have ended.
      }
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
