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

/** Known vulnerabilities. Remove an entry when it is fixed. */
const OPEN: readonly string[] = [];

describe('attack tool on this service', () => {
  let service: AttackedService;
  let attackRun: AttackRun;

  before(async () => {
    service = await startAttackedService();
    attackRun = await attack(service.target, { VIDIMUS_CLIENT_SECRET: service.secret });
  });
  after(() => service.close());

  it('finds only known vulnerabilities', () => {
    expect(formatCases(attackRun.cases, 'open'), attackRun.stdout).to.deep.equal(OPEN);
    expect(attackRun.code).to.equal(OPEN.length === 0 ? 0 : 1);
  });

  it('runs every family that applies to the service', () => {
    const idleFamilies = attackRun.families.filter(({ state }) => state !== 'run');
    expect(idleFamilies.map(({ family, state, reason }) => `${family}: ${state}: ${reason}`)).to.deep.equal([]);
    expect(attackRun.families.length).to.be.at.least(30);
  });

  it('detects features, and skips missing ones', () => {
    expect(formatCases(attackRun.cases, 'unclear'), attackRun.stdout).to.deep.equal([]);
    expect(formatCases(attackRun.cases, 'skipped')).to.have.members([
      'proofs: a key attestation that nobody signed',
      'encryption: a request in the clear where encryption is demanded',
      'status: a credential that has expired',
    ]);
    expect(formatCases(attackRun.cases, 'held').length).to.be.above(500);
  });

  it('prints no secret', () => {
    const output = attackRun.stdout + attackRun.stderr;
    expect(output).to.not.include(service.secret);
    expect(output, 'a token or a credential').to.not.match(/eyJ[A-Za-z0-9_-]{20}/);
  });

  it('attacks by links only, as far as possible', async () => {
    const isSpent = await attack([await service.offer(), '--only', 'pre-authorized']);
    expect(formatCases(isSpent.cases, 'skipped'), isSpent.stdout).to.not.deep.equal([]);
    expect(isSpent.stdout).to.include('give --offer-command');
  });

  it('checks metadata without an offer, and issues by an authorization code when nothing else is offered', async () => {
    const metadataRun = await attack([`${service.address}/acme`]);
    const state = (family: string) => metadataRun.families.find((candidate) => candidate.family === family)?.state;
    expect([metadataRun.code, state('metadata'), state('proofs')], metadataRun.stderr).to.deep.equal([0, 'run', 'skipped']);
    const codeRun = await attack([await service.offer('authorization_code'), '--only', 'notifications']);
    expect(codeRun.stderr).to.include('no fresh offer is left');
  });

  it('reports by its exit code that a family could not be run', async () => {
    const link = await service.offer();
    await attack([link, '--only', 'metadata']);
    const repeatedRun = await attack([link, '--only', 'metadata']);
    expect([repeatedRun.code, repeatedRun.families[0]?.state], repeatedRun.stdout).to.deep.equal([2, 'not run']);
  });

  it('attacks a service whose offers and requests come from commands, with a credential from a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-held-'));
    const links = createServer((request, response) => {
      void (request.url === '/offer' ? service.offer() : service.ask()).then((uri) => response.end(uri));
    });
    await new Promise<void>((resolve) => links.listen(0, '127.0.0.1', resolve));
    const { port: linkPort } = links.address() as AddressInfo;
    const command = (path: string) =>
      `"${process.execPath}" -e "fetch('http://127.0.0.1:${linkPort}${path}').then((r) => r.text()).then(console.log)"`;
    try {
      const [storedCredential] = await new Openid4vcWallet().accept(await service.offer());
      writeFileSync(join(folder, 'credential'), storedCredential?.text ?? '');
      const key = storedCredential?.holder.privateKey.export({ format: 'jwk' });
      writeFileSync(join(folder, 'key'), JSON.stringify(key));
      const [issuanceRun, presentationRun] = await Promise.all([
        attack(['--offer-command', command('/offer'), '--only', 'pre-authorized']),
        attack([
          ...['--request-command', command('/ask'), '--only', 'key-binding'],
          ...['--credential', join(folder, 'credential'), '--holder-key', join(folder, 'key')],
        ]),
      ]);
      expect([issuanceRun.code, presentationRun.code], issuanceRun.stdout + presentationRun.stdout).to.deep.equal([0, 0]);
      expect(formatCases(issuanceRun.cases, 'held')).to.have.length.above(8);
      expect(formatCases(presentationRun.cases, 'held')).to.have.length.above(20);
    } finally {
      links.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('supports issuers with more and with fewer requirements', async () => {
    const admin = new AdminClient(service.address, service.clientId, service.secret);
    const display = [{ name: 'Acme', locale: 'en' }];
    const environment = { VIDIMUS_CLIENT_SECRET: service.secret };
    const families = ['credential-requests', 'dpop-token', 'dpop-resource', 'encryption', 'deferred', 'nonces'];
    const onlyOptions = families.flatMap((family) => ['--only', family]);
    const strictConfig = { requestEncryption: 'required', responseEncryption: 'required', dPopNonce: 'required' };
    await admin.post('/issuer/config', { display, ...strictConfig });
    const strictRun = await attack([...service.target, ...onlyOptions], environment);
    const lenientConfig = { requestEncryption: 'off', responseEncryption: 'off', dPopNonce: 'off', dPopRequired: false };
    await admin.post('/issuer/config', { display, ...lenientConfig });
    const lenientRun = await attack([...service.target, ...onlyOptions], environment);
    for (const { code, cases, stdout } of [strictRun, lenientRun]) {
      expect(code, stdout).to.equal(0);
      expect(formatCases(cases, 'unclear'), stdout).to.deep.equal([]);
    }
    expect(formatCases(strictRun.cases, 'skipped')).to.deep.equal([]);
    expect(formatCases(lenientRun.cases, 'skipped')).to.include('dpop-resource: a nonce that was never given');
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
    const cases = families.flatMap(({ cases }) => cases as readonly { section: string; why: string }[]);
    expect(page).to.include(`${families.length} families with ${cases.length} cases`);
    for (const { section, why } of cases) expect([section === '', why === '']).to.deep.equal([false, false]);
  });
});

describe('outgoing calls of the attack tool', () => {
  let server: Server;
  const callTimes: number[] = [];
  let redirect: string | undefined;
  let port: number;

  before(async () => {
    server = createServer((_request, response) => {
      callTimes.push(performance.now());
      if (redirect === undefined) response.writeHead(404).end();
      else response.writeHead(302, { Location: redirect }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    port = (server.address() as AddressInfo).port;
  });
  after(() => server.close());
  beforeEach(() => {
    callTimes.length = 0;
    redirect = undefined;
  });

  it('go to no other machine unless its operator names it', async () => {
    const rejectedRun = await attack([`http://0.0.0.0:${port}/acme`]);
    expect(rejectedRun.code).to.equal(2);
    expect(rejectedRun.stderr).to.include('--i-operate-this 0.0.0.0');
    const allowedRun = await attack([`http://0.0.0.0:${port}/acme`, '--i-operate-this', 'issuer.example']);
    expect(allowedRun.code).to.equal(2);
    expect(callTimes).to.deep.equal([]);
  });

  it('go to a named machine at most twice per second', async () => {
    await attack([`http://0.0.0.0:${port}/acme`, '--i-operate-this', '0.0.0.0']);
    expect(callTimes).to.have.length(2);
    const [firstCall = 0, secondCall = 0] = callTimes;
    expect(secondCall - firstCall).to.be.at.least(450);
  });

  it('follow no redirect, and no metadata, to another host', async () => {
    redirect = `http://0.0.0.0:${port}/elsewhere`;
    const { code } = await attack([`http://127.0.0.1:${port}/acme`]);
    expect(code).to.equal(2);
    expect(callTimes).to.have.length(2);
    const offer = encodeURIComponent(`http://0.0.0.0:${port}/offer`);
    const redirectedRun = await attack([`openid-credential-offer://?credential_offer_uri=${offer}`]);
    expect([redirectedRun.code, redirectedRun.stderr.includes('is not this machine')]).to.deep.equal([2, true]);
    expect(callTimes).to.have.length(2);
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

  it('are serialized for simultaneous callers', async () => {
    let now = 0;
    const sleeps: number[] = [];
    const sleep = async (ms: number) => {
      sleeps.push(ms);
    };
    const gate = new Gate(['issuer.example'], () => now, sleep);
    const throttledCalls = () => Promise.all(Array.from({ length: 4 }, () => gate.turn(new URL('https://issuer.example'))));
    await throttledCalls();
    expect(sleeps).to.deep.equal([500, 1000, 1500]);
    now = 10_000;
    sleeps.length = 0;
    await gate.turn(new URL('https://issuer.example'));
    await Promise.all(Array.from({ length: 24 }, () => gate.turn(new URL('http://localhost:1'))));
    expect(sleeps).to.deep.equal([]);
  });
});
