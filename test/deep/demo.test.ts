import { spawn } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { bareEnvironment } from '../support/compile-cache.ts';

const DEMO = fileURLToPath(new URL('../demo/demo.ts', import.meta.url));

describe('The demo', () => {
  it('stays with --keep where PORT says, until it is told to end', async () => {
    const port = await freePort(createServer);
    const child = spawn(process.execPath, [DEMO, '--keep'], {
      env: { ...bareEnvironment(), PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    try {
      let output = '';
      const keeps = new Promise<void>((resolve) => {
        for (const stream of [child.stdout, child.stderr]) {
          stream.on('data', (chunk: Buffer) => {
            output += chunk.toString();
            if (output.includes('root client')) resolve();
          });
        }
      });
      const over = await Promise.race([keeps, ended]);
      expect(over, output).to.equal(undefined);
      expect(output).to.include(`http://localhost:${port}/docs`);
      const health = await fetch(`http://localhost:${port}/health`);
      expect(health.status).to.equal(200);
      const metadata = await fetch(`http://localhost:${port}/.well-known/openid-credential-issuer/demo`);
      expect(await metadata.json()).to.include({ credential_issuer: `http://localhost:${port}/demo` });
      child.kill('SIGTERM');
      expect(await ended).to.equal(0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('runs through with --once where PORT says', async () => {
    const port = await freePort(createServer);
    const { code, output } = await run({ PORT: String(port) });
    expect(code, output).to.equal(0);
    expect(output).to.include(`http://localhost:${port}`);
  });

  it('says with --once, too, that PORT is taken', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const { code, output } = await run({ PORT: String(port) });
    other.close();
    expect(code).to.equal(1);
    expect(output).to.include(`port ${port} is taken; set PORT to another one`);
  });
});

async function run(environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [DEMO, '--once'], {
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}
