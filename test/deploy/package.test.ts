import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { build } from 'esbuild';
import { freePort } from '../demo/process.ts';
import { runProgram, startProgram, stopPrograms, waitForAnswer } from '../support/programs.ts';

/** Packages are two hundred megabytes, which not every machine has in memory. */
const ON_DISK = '/var/tmp';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const { devDependencies } = readJson(join(ROOT, 'package.json')) as { devDependencies: Record<string, string> };
const { packages: locked } = readJson(join(ROOT, 'package-lock.json')) as {
  packages: Record<string, { version: string; dev?: boolean; link?: boolean; optional?: boolean }>;
};
const COMMANDS = [
  ...['demo', 'start', 'doctor', 'config check', 'config export', 'audit verify', 'kms migrate', 'migrate', 'reseal'],
  ...['restore fence', 'attack', 'wallet'],
];

describe('npm package', function () {
  this.timeout(180_000);
  let folder: string;
  let installed: string;

  before(() => {
    folder = mkdtempSync(join(ON_DISK, 'vidimus-package-test-'));
    mkdirSync(join(folder, 'app'));
    const file = execFileSync(process.execPath, [join(ROOT, 'tools/package.mjs'), folder], { encoding: 'utf8' });
    // What `npm ci` downloaded is taken again.
    const args = ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', file.trim()];
    execFileSync('npm', args, { cwd: join(folder, 'app'), stdio: 'pipe' });
    installed = join(folder, 'app/node_modules');
  });
  afterEach(stopPrograms);
  after(() => rmSync(folder, { recursive: true, force: true }));

  const vidimus = (args: string[], environment: Record<string, string> = {}) =>
    startProgram(join(installed, '.bin/vidimus'), args, {
      cwd: join(folder, 'app'),
      environment: { PATH: process.env['PATH'], ...environment },
    });
  const run = async (...args: string[]) => {
    const program = vidimus(args);
    return { code: await program.ended, output: program.output() };
  };

  it('contains the built program and its documentation, and no tests, sources or development files', () => {
    const files = globSync('**/*', { cwd: join(installed, 'vidimus') });
    const unwanted = files.filter((file) => /(?<!\.d)\.ts$|\.map$/.test(file));
    expect(unwanted).to.deep.equal([]);
    const tests = files.filter((file) => /(^|\/)test\/./.test(file) && !file.startsWith('dist/test/demo'));
    expect(tests).to.deep.equal([]);
    expect(files).to.include.members([
      'LICENSE',
      'README.md',
      'docs/reference/issuing.md',
      'dist/bootstrap/main.js',
      'packages/client/dist/index.js',
    ]);
    for (const name of Object.keys(devDependencies)) {
      const isAlsoOurs = locked[`node_modules/${name}`]?.dev !== true;
      if (!isAlsoOurs) expect(existsSync(join(installed, name)), name).to.equal(false);
    }
  });

  it('installs every package at the tested version, and none that counts installations', () => {
    const versions = Object.entries(locked).flatMap(([path, { version, dev, link, optional }]) =>
      !path.startsWith('node_modules/') || dev || link || optional || path.lastIndexOf('node_modules/') > 0
        ? []
        : [[path, version] as const],
    );
    expect(versions.length).to.be.greaterThan(100);
    for (const [path, version] of versions) {
      if (path === 'node_modules/swagger-ui-dist' || path === 'node_modules/@scarf/scarf') continue;
      const installedPackage = readJson(join(folder, 'app', path, 'package.json')) as { version: string };
      expect(installedPackage.version, path).to.equal(version);
    }
    expect(globSync('**/@scarf/**', { cwd: installed })).to.deep.equal([]);
  });

  it('contains a client that compiles in strict mode without other packages, and works', async () => {
    const consumer = join(folder, 'app/consumer');
    cpSync(join(ROOT, 'test/deploy/client-consumer'), consumer, { recursive: true });
    const options = { cwd: consumer, environment: { PATH: process.env['PATH'] } };
    const older = join(ROOT, 'test/generated-client/node_modules/.bin/tsc');
    for (const compiler of [join(ROOT, 'node_modules/.bin/tsc'), ...(existsSync(older) ? [older] : [])]) {
      const { code, output } = await runProgram(compiler, ['-p', consumer], options);
      expect(code, output).to.equal(0);
    }
    const { code, output } = await runProgram(process.execPath, ['consumer.js'], options);
    expect([code, output]).to.deep.equal([0, 'unreachable http://127.0.0.1:1 cannot be reached\n']);
  });

  it('contains a client that can be packed and installed alone', async () => {
    const backend = join(folder, 'backend');
    cpSync(join(ROOT, 'test/deploy/client-consumer'), backend, { recursive: true });
    const source = readFileSync(join(backend, 'consumer.ts'), 'utf8');
    writeFileSync(join(backend, 'consumer.ts'), source.replace("'vidimus/client'", "'@vidimus/client'"));
    const packed = execFileSync(process.execPath, [join(ROOT, 'packages/client/package.mjs'), folder], { encoding: 'utf8' });
    const args = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', packed.trim()];
    execFileSync('npm', args, { cwd: backend, stdio: 'pipe' });
    expect(globSync('node_modules/{*,@*/*}', { cwd: backend })).to.have.members(['node_modules/@vidimus', 'node_modules/@vidimus/client']);
    const options = { cwd: backend, environment: { PATH: process.env['PATH'] } };
    const compiled = await runProgram(join(ROOT, 'node_modules/.bin/tsc'), ['-p', backend], options);
    expect(compiled.code, compiled.output).to.equal(0);
    const { code, output } = await runProgram(process.execPath, ['consumer.js'], options);
    expect([code, output]).to.deep.equal([0, 'unreachable http://127.0.0.1:1 cannot be reached\n']);
  });

  it('contains a client for browsers that needs no other package and no Node module', async () => {
    const { outputFiles } = await build({
      stdin: { contents: "export * from 'vidimus/client'", resolveDir: join(folder, 'app') },
      ...{ bundle: true, write: false, platform: 'browser', format: 'esm', metafile: true },
    });
    const text = outputFiles[0]?.text ?? '';
    expect(text)
      .to.include('VidimusClient')
      .and.not.match(/\b(process|Buffer|require)\b/);
    expect(text.length).to.be.lessThan(30_000);
  });

  it('prints its commands and the options of each command', async () => {
    const help = await run('--help');
    expect(help.code, help.output).to.equal(0);
    for (const command of COMMANDS) {
      expect(help.output).to.include(`\n  ${command}`);
      const helpResult = await run(...command.split(' '), '--help');
      expect(helpResult.code, `${command}: ${helpResult.output}`).to.be.oneOf([0, 2]);
      expect(helpResult.output, command).to.match(/usage|npx vidimus/i);
    }
    for (const invalidArgs of [[], ['unknown'], ['config'], ['config', 'unknown'], ['toString']]) {
      const rejection = await run(...invalidArgs);
      expect(rejection.code, invalidArgs.join(' ')).to.equal(2);
      expect(rejection.output, invalidArgs.join(' ')).to.include('usage: npx vidimus');
    }
    const misused = await run('kms', 'migrate');
    expect([misused.code, misused.output]).to.deep.equal([
      2,
      'name a tenant and a provider\nusage: npx vidimus kms migrate <tenant> <provider>\n',
    ]);
    const { version } = readJson(join(ROOT, 'package.json')) as { version: string };
    expect((await run('--version')).output.trim()).to.equal(version);
  });

  it('runs the demo', async () => {
    const args = ['vidimus', 'demo'];
    const environment = { PATH: process.env['PATH'], HOME: folder };
    const { code, output } = await runProgram('npx', args, { cwd: join(folder, 'app'), environment });
    expect(code, output).to.equal(0);
    expect(output).to.include('Everything happened');
    const eu = await run('demo', '--eu');
    expect(eu.code, eu.output).to.equal(0);
  });

  it('starts with generated secrets, serves its pages, passes the doctor, and ends on SIGTERM', async () => {
    const port = await freePort(createServer);
    const service = vidimus(['start'], { PORT: String(port) });
    await waitForAnswer(service, `http://127.0.0.1:${port}/health`);
    for (const path of ['/docs', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/openapi.json'])
      expect((await fetch(`http://127.0.0.1:${port}${path}`)).status, path).to.equal(200);
    const page = await (await fetch(`http://127.0.0.1:${port}/console`)).text();
    const [, script = ''] = /src="([^"]+)"/.exec(page) ?? [];
    expect((await fetch(`http://127.0.0.1:${port}${script}`)).status, page).to.equal(200);
    expect(existsSync(join(folder, 'app/data/secrets.env'))).to.equal(true);
    const examined = vidimus(['doctor', '--strict'], { PORT: String(port) });
    expect(await examined.ended, examined.output()).to.equal(0);
    expect(examined.output()).to.include('0 faults');
    service.child.kill('SIGTERM');
    expect(await service.ended, service.output()).to.equal(0);
    const verified = await run('audit', 'verify');
    expect(verified.code, verified.output).to.equal(0);
  });

  it('runs with the command of the systemd unit', async () => {
    const unit = readFileSync(join(installed, 'vidimus/deploy/systemd/vidimus.service'), 'utf8');
    const adaptToTest = (text: string) => text.replaceAll('/opt/vidimus', join(folder, 'app'));
    const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    const [program = '', ...args] = adaptToTest(command).split(' ');
    for (const path of [program, args[0] ?? '']) expect(existsSync(path), path).to.equal(true);
    const [, documentation = ''] = /^Documentation=file:(.*)$/m.exec(unit) ?? [];
    expect(existsSync(adaptToTest(documentation)), documentation).to.equal(true);
    const set = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, text = '']) => text.split(' '));
    const port = await freePort(createServer);
    const environment = {
      ...(Object.fromEntries(set.map((assignment) => assignment.split('='))) as Record<string, string>),
      PORT: String(port),
      DATA_FOLDER: join(folder, 'state'),
      PUBLIC_URL: 'https://id.acme.example',
      MASTER_SECRET: 'a master secret that is only for tests 0123456789',
      AUTH_CLIENT_ID: 'root',
      AUTH_CLIENT_SECRET: 'an operator has this secret',
    };
    const service = startProgram(program, args, { cwd: folder, environment });
    await waitForAnswer(service, `http://127.0.0.1:${port}/health/ready`);
    service.child.kill('SIGINT');
    expect(await service.ended, service.output()).to.equal(0);
  });
});

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
