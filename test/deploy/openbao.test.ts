import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { describeWithOpenBao } from '../support/openbao.ts';
import { type RunningProgram, startProgram, stopPrograms, waitForAnswer } from '../support/programs.ts';
import { createTenant, ROOT } from '../support/test-service.ts';
import { callerFor } from '../support/worker-service.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

describeWithOpenBao('OpenBao with the configuration of deploy/ and docs/guides/docker-compose.md', (binary) => {
  let folder: string;
  let server: RunningProgram;
  let address: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-bao-'));
    cpSync(join(REPOSITORY, 'deploy/compose'), join(folder, 'deploy/compose'), {
      recursive: true,
      filter: (file) => !file.endsWith('/secrets'),
    });
    execFileSync(join(folder, 'deploy/compose/make-secrets.sh'), ['id.acme.example'], { stdio: 'pipe' });
    const port = await freePort(createServer);
    address = `http://127.0.0.1:${port}`;
    const cluster = `127.0.0.1:${await freePort(createServer)}`;
    mkdirSync(join(folder, 'data'));
    const file = join(folder, 'deploy/compose/openbao.hcl');
    let text = readFileSync(file, 'utf8');
    for (const [originalText, localText] of [
      ['0.0.0.0:8200', `127.0.0.1:${port}`],
      ['http://openbao:8200', address],
      ['0.0.0.0:8201', cluster],
      ['openbao:8201', cluster],
      ['/openbao/file', join(folder, 'data')],
    ] as const) {
      expect(text).to.include(originalText);
      text = text.replace(originalText, localText);
    }
    writeFileSync(file, text);
    mkdirSync(join(folder, 'bin'));
    symlinkSync(binary, join(folder, 'bin/bao'));
    server = startProgram(binary, ['server', `-config=${file}`], { environment: { HOME: folder } });
    const deadline = Date.now() + 20_000;
    while (!server.output().includes('server started') && server.child.exitCode === null && Date.now() < deadline) await setTimeout(50);
    expect(server.output()).to.include('server started');
  });
  after(async () => {
    await stopPrograms();
    rmSync(folder, { recursive: true, force: true });
  });

  const shell = (script: string) => {
    const environment = { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, HOME: folder, BAO_ADDR: address };
    return execFileSync('sh', ['-euc', script], { cwd: folder, env: environment, encoding: 'utf8', stdio: 'pipe' });
  };

  it('is healthy while it is sealed, for the health check of the compose file', () => {
    const compose = readFileSync(join(REPOSITORY, 'deploy/compose.yaml'), 'utf8');
    const [, healthCommand = ''] = /CMD-SHELL, "(bao status.*)"\]/.exec(compose) ?? [];
    shell(healthCommand.replaceAll('$$', '$'));
  });

  it('creates a role for the service by the commands of the documentation, and stores the keys of a tenant', async () => {
    const page = readFileSync(join(REPOSITORY, 'docs/guides/docker-compose.md'), 'utf8');
    const [, commands = ''] = /```sh\n(bao\(\) \{[^`]*)```/.exec(page) ?? [];
    // A local program replaces the one in the container.
    const [, ...furtherCommands] = commands.split('\n');
    shell(furtherCommands.join('\n'));

    const compose = join(folder, 'deploy/compose');
    const { VAULT_SECRET_ID } = parseEnv(readFileSync(join(compose, 'secrets/vidimus.env'), 'utf8'));
    const kms = readFileSync(join(compose, 'kms.json'), 'utf8').replace('http://openbao:8200', address);
    const port = await freePort(createServer);
    const environment = {
      PATH: process.env['PATH'],
      ...{ PORT: String(port), DATA_FOLDER: join(folder, 'state'), DRAIN_SECONDS: '0', KMS_CONFIG: kms, VAULT_SECRET_ID },
      ...{ AUTH_CLIENT_ID: ROOT.clientId, AUTH_CLIENT_SECRET: ROOT.secret },
    };
    const main = join(REPOSITORY, 'bootstrap/main.ts');
    const service = startProgram(process.execPath, [main], { environment, cwd: dirname(main) });
    await waitForAnswer(service, `http://127.0.0.1:${port}/health`);
    const calls = callerFor(`http://127.0.0.1:${port}`);
    const health = await calls.call('GET', '/health');
    expect(health.body.details).to.deep.include({ 'key-providers': { status: 'up' } });
    const { token } = await createTenant(calls, 'acme', { kms: 'house' });
    const { body: chains } = await calls.call('GET', '/key-chain', { token });
    expect(chains.length).to.be.greaterThan(0);
    for (const { kmsProvider } of chains) expect(kmsProvider).to.equal('house');
    service.child.kill('SIGTERM');
    expect(await service.ended).to.equal(0);
  });
});
