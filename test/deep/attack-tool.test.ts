import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Gate, isLoopback, RefusedAddress } from '../../packages/attack/src/core/gate.ts';
import { issuerFamilies, verifierFamilies } from '../../packages/attack/src/families/all.ts';
import { AdminClient } from '../demo/admin-client.ts';
import { type AttackedService, type AttackRun, attack, formatCases, startAttackedService } from '../support/attacked-service.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

/** What is known to be open. Whoever mends one takes it out of here. */
const OPEN: readonly string[] = [];

describe('attack tool on this service', () => {
  let service: AttackedService;
  let run: AttackRun;

  before(async () => {
    service = await startAttackedService();
    run = await attack(service.target, { VIDIMUS_CLIENT_SECRET: service.secret });
  });
  after(() => service.close());

  it('finds only known vulnerabilities', () => {
    expect(formatCases(run.cases, 'open'), run.stdout).to.deep.equal(OPEN);
    expect(run.code).to.equal(OPEN.length === 0 ? 0 : 1);
  });

  it('runs every family that applies to the service', () => {
    const idle = run.families.filter(({ state }) => state !== 'run');
    expect(idle.map(({ family, state, reason }) => `${family}: ${state}: ${reason}`)).to.deep.equal([]);
    expect(run.families.length).to.be.at.least(30);
  });

  it('detects features, and skips missing ones', () => {
    expect(formatCases(run.cases, 'unclear'), run.stdout).to.deep.equal([]);
    expect(formatCases(run.cases, 'skipped')).to.have.members([
      'proofs: a key attestation that nobody signed',
      'encryption: a request in the clear where encryption is demanded',
      'status: a credential that has expired',
    ]);
    expect(formatCases(run.cases, 'held').length).to.be.above(500);
  });

  it('prints no secret', () => {
    const said = run.stdout + run.stderr;
    expect(said).to.not.include(service.secret);
    expect(said, 'a token or a credential').to.not.match(/eyJ[A-Za-z0-9_-]{20}/);
  });

  it('attacks by links only, as far as possible', async () => {
    const spent = await attack([await service.offer(), '--only', 'pre-authorized']);
    expect(formatCases(spent.cases, 'skipped'), spent.stdout).to.not.deep.equal([]);
    expect(spent.stdout).to.include('give --offer-command');
  });

  it('checks metadata without an offer, and issues by an authorization code when nothing else is offered', async () => {
    const alone = await attack([`${service.address}/acme`]);
    const state = (family: string) => alone.families.find((one) => one.family === family)?.state;
    expect([alone.code, state('metadata'), state('proofs')], alone.stderr).to.deep.equal([0, 'run', 'skipped']);
    const byCode = await attack([await service.offer('authorization_code'), '--only', 'notifications']);
    expect(byCode.stderr).to.include('no fresh offer is left');
  });

  it('reports by its exit code that a family could not be run', async () => {
    const link = await service.offer();
    await attack([link, '--only', 'metadata']);
    const again = await attack([link, '--only', 'metadata']);
    expect([again.code, again.families[0]?.state], again.stdout).to.deep.equal([2, 'not run']);
  });

  it('attacks a service whose offers and requests come from commands, with a credential from a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-held-'));
    const links = createServer((request, response) => {
      void (request.url === '/offer' ? service.offer() : service.ask()).then((uri) => response.end(uri));
    });
    await new Promise<void>((resolve) => links.listen(0, '127.0.0.1', resolve));
    const { port: at } = links.address() as AddressInfo;
    const command = (path: string) =>
      `"${process.execPath}" -e "fetch('http://127.0.0.1:${at}${path}').then((r) => r.text()).then(console.log)"`;
    try {
      const [held] = await new Openid4vcWallet().accept(await service.offer());
      writeFileSync(join(folder, 'credential'), held?.text ?? '');
      const key = held?.holder.privateKey.export({ format: 'jwk' });
      writeFileSync(join(folder, 'key'), JSON.stringify(key));
      const [issued, presented] = await Promise.all([
        attack(['--offer-command', command('/offer'), '--only', 'pre-authorized']),
        attack([
          ...['--request-command', command('/ask'), '--only', 'key-binding'],
          ...['--credential', join(folder, 'credential'), '--holder-key', join(folder, 'key')],
        ]),
      ]);
      expect([issued.code, presented.code], issued.stdout + presented.stdout).to.deep.equal([0, 0]);
      expect(formatCases(issued.cases, 'held')).to.have.length.above(8);
      expect(formatCases(presented.cases, 'held')).to.have.length.above(20);
    } finally {
      links.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('supports issuers with more and with fewer requirements', async () => {
    const admin = new AdminClient(service.address, service.clientId, service.secret);
    const display = [{ name: 'Acme', locale: 'en' }];
    const environment = { VIDIMUS_CLIENT_SECRET: service.secret };
    const all = ['credential-requests', 'dpop-token', 'dpop-resource', 'encryption', 'deferred', 'nonces'];
    const only = all.flatMap((family) => ['--only', family]);
    const strict = { requestEncryption: 'required', responseEncryption: 'required', dPopNonce: 'required' };
    await admin.post('/issuer/config', { display, ...strict });
    const demanding = await attack([...service.target, ...only], environment);
    const open = { requestEncryption: 'off', responseEncryption: 'off', dPopNonce: 'off', dPopRequired: false };
    await admin.post('/issuer/config', { display, ...open });
    const undemanding = await attack([...service.target, ...only], environment);
    for (const { code, cases, stdout } of [demanding, undemanding]) {
      expect(code, stdout).to.equal(0);
      expect(formatCases(cases, 'unclear'), stdout).to.deep.equal([]);
    }
    expect(formatCases(demanding.cases, 'skipped')).to.deep.equal([]);
    expect(formatCases(undemanding.cases, 'skipped')).to.include('dpop-resource: a nonce that was never given');
  });

  it('reports responses that it cannot parse', async () => {
    for (const args of [[], ['--unknown'], ['--only', 'nothing'], ['--credential', 'x']]) {
      const { code, stderr } = await attack(args);
      expect([code, stderr === ''], args.join(' ')).to.deep.equal([2, false]);
    }
  });
});

describe('attack tool page', () => {
  it('lists every family with the number of its cases', () => {
    const page = readFileSync(new URL('../../docs/reference/attack-tool.md', import.meta.url), 'utf8');
    const families = [...issuerFamilies, ...verifierFamilies];
    for (const { id, cases } of families) expect(page).to.include(`\`${id}\` (${cases.length})`);
    const all = families.flatMap(({ cases }) => cases as readonly { section: string; why: string }[]);
    expect(page).to.include(`${families.length} families with ${all.length} cases`);
    for (const { section, why } of all) expect([section === '', why === '']).to.deep.equal([false, false]);
  });
});

describe('outgoing calls of the attack tool', () => {
  let server: Server;
  const called: number[] = [];
  let redirect: string | undefined;
  let port: number;

  before(async () => {
    server = createServer((_request, response) => {
      called.push(performance.now());
      if (redirect === undefined) response.writeHead(404).end();
      else response.writeHead(302, { Location: redirect }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    port = (server.address() as AddressInfo).port;
  });
  after(() => server.close());
  beforeEach(() => {
    called.length = 0;
    redirect = undefined;
  });

  it('go to no other machine unless its operator names it', async () => {
    const refused = await attack([`http://0.0.0.0:${port}/acme`]);
    expect(refused.code).to.equal(2);
    expect(refused.stderr).to.include('--i-operate-this 0.0.0.0');
    const other = await attack([`http://0.0.0.0:${port}/acme`, '--i-operate-this', 'issuer.example']);
    expect(other.code).to.equal(2);
    expect(called).to.deep.equal([]);
  });

  it('go to a named machine at most twice per second', async () => {
    await attack([`http://0.0.0.0:${port}/acme`, '--i-operate-this', '0.0.0.0']);
    expect(called).to.have.length(2);
    const [first = 0, second = 0] = called;
    expect(second - first).to.be.at.least(450);
  });

  it('follow no redirect, and no metadata, to another host', async () => {
    redirect = `http://0.0.0.0:${port}/elsewhere`;
    const { code } = await attack([`http://127.0.0.1:${port}/acme`]);
    expect(code).to.equal(2);
    expect(called).to.have.length(2);
    const offer = encodeURIComponent(`http://0.0.0.0:${port}/offer`);
    const led = await attack([`openid-credential-offer://?credential_offer_uri=${offer}`]);
    expect([led.code, led.stderr.includes('is not this machine')]).to.deep.equal([2, true]);
    expect(called).to.have.length(2);
  });

  it('recognize this machine only by its addresses and one name', () => {
    for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '[::1]']) expect(isLoopback(host), host).to.equal(true);
    for (const host of ['0.0.0.0', 'localhost.example', '127.0.0.1.example', '10.0.0.1', '[::]', 'ip6-localhost'])
      expect(isLoopback(host), host).to.equal(false);
    const gate = new Gate(['issuer.example']);
    for (const address of ['https://issuer.example.evil/', 'https://x.issuer.example/', 'file:///etc/passwd', 'nonsense'])
      expect(() => gate.admit(address), address).to.throw(RefusedAddress);
    expect(gate.admit('https://issuer.example/a').hostname).to.equal('issuer.example');
  });

  it('are serialized when many callers call at once', async () => {
    let now = 0;
    const slept: number[] = [];
    const sleep = async (ms: number) => {
      slept.push(ms);
    };
    const gate = new Gate(['issuer.example'], () => now, sleep);
    const turns = () => Promise.all(Array.from({ length: 4 }, () => gate.turn(new URL('https://issuer.example'))));
    await turns();
    expect(slept).to.deep.equal([500, 1000, 1500]);
    now = 10_000;
    slept.length = 0;
    await gate.turn(new URL('https://issuer.example'));
    await Promise.all(Array.from({ length: 24 }, () => gate.turn(new URL('http://localhost:1'))));
    expect(slept).to.deep.equal([]);
  });
});
