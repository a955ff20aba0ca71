import { spawn, spawnSync } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Authorities } from '../demo/authorities.ts';
import { freePort } from '../demo/process.ts';
import { StrictReader } from '../demo/strict-reader.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { certify } from '../support/test-certificates.ts';

const DEMO = fileURLToPath(new URL('../demo/demo.ts', import.meta.url));

describe('The demo', () => {
  it('stays on PORT with --keep until it is stopped', async () => {
    const port = await freePort(createServer);
    const child = spawn(process.execPath, [DEMO, '--keep'], {
      env: { ...minimalEnvironment(), PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exitCode = new Promise<number | null>((resolve) => child.once('exit', resolve));
    try {
      let output = '';
      const keepsRunning = new Promise<void>((resolve) => {
        for (const stream of [child.stdout, child.stderr]) {
          stream.on('data', (chunk: Buffer) => {
            output += chunk.toString();
            if (output.includes('root client')) resolve();
          });
        }
      });
      const firstToFinish = await Promise.race([keepsRunning, exitCode]);
      expect(firstToFinish, output).to.equal(undefined);
      expect(output).to.include(`http://localhost:${port}/docs`);
      const health = await fetch(`http://localhost:${port}/health`);
      expect(health.status).to.equal(200);
      const metadata = await fetch(`http://localhost:${port}/.well-known/openid-credential-issuer/demo`);
      expect(await metadata.json()).to.include({ credential_issuer: `http://localhost:${port}/demo` });
      child.kill('SIGTERM');
      expect(await exitCode).to.equal(0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('completes with --once on PORT', async () => {
    const port = await freePort(createServer);
    const { code, output } = await run({ PORT: String(port) });
    expect(code, output).to.equal(0);
    expect(output).to.include(`http://localhost:${port}`);
  });

  it('reports with --once, too, that PORT is in use', async () => {
    const occupyingServer = createServer();
    await new Promise<void>((resolve) => occupyingServer.listen(0, '127.0.0.1', resolve));
    const { port } = occupyingServer.address() as AddressInfo;
    const { code, output } = await run({ PORT: String(port) });
    occupyingServer.close();
    expect(code).to.equal(1);
    expect(output).to.include(`port ${port} is in use; set PORT to another one`);
  });
});

async function run(environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [DEMO, '--once'], {
    env: { ...minimalEnvironment(), ...environment },
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

const SECONDS = 60;

describe('The demo with the profile eu', function () {
  this.timeout(2 * SECONDS * 1000);

  const run = (options: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    const env = { ...minimalEnvironment(), NO_COLOR: '1', ...environment };
    const { status, stdout, stderr } = spawnSync(process.execPath, [DEMO, ...options], {
      ...{ env, encoding: 'utf8', timeout: SECONDS * 1000 },
    });
    return { status, stdout, stderr };
  };

  it('issues both formats to an attested wallet, verifies them, and rejects all other wallets', () => {
    const { status, stdout, stderr } = run(['--eu']);
    expect(status, stdout + stderr).to.equal(0);
    for (const line of [
      'registered: 4 certificates',
      'person ID: 2 copies',
      'revoked: invalid_client_attestation',
      'not attested: invalid_client',
      'the shop learned: {"given_name":"Ada","age_over_18":true}',
      'the car rental learned:',
      'status_revoked',
      'Everything happened',
    ])
      expect(stdout).to.include(line);
  });

  it('prints its usage and starts nothing for invalid arguments', () => {
    const { status, stdout, stderr } = run(['--eux']);
    expect([status, stdout]).to.deep.equal([2, '']);
    expect(stderr).to.match(/^--eux is not known\nusage: npm run demo -- \[--eu\] \[--keep \| --once\]/);
  });

  it('prints the remedy without a stack trace when it fails', async () => {
    const port = await freePort(createServer);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    const { status, stderr } = run(['--eu', '--keep'], { PORT: String(port) });
    server.close();
    expect(status).to.equal(1);
    expect(stderr).to.include(`The demo failed: port ${port} is in use`).and.include('What to do: ');
    expect(stderr).to.not.match(/\n\s+at /);
  });
});

describe('wallet of the demo with the profile eu', () => {
  let authorities: Authorities;
  let reader: StrictReader;
  let chain: readonly string[];

  const QUERY = {
    credentials: [{ ...{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }, claims: [{ path: ['given_name'] }] }],
  };
  const REGISTERED = QUERY.credentials.map(({ id: _id, ...credential }) => credential);
  const request = (data: string) => ({ dcql_query: QUERY, verifier_info: [{ format: 'registration_cert', data }] });
  const refusal = (work: Promise<unknown>) =>
    work.then(
      () => 'accepted',
      (error: Error) => error.message,
    );

  before(async () => {
    authorities = await Authorities.start();
    reader = await StrictReader.load(authorities.listAddress, authorities.operator);
    const leaf = await certify({ name: 'Shop', by: authorities.registrar.ca });
    chain = [leaf.certificate];
  });
  after(() => authorities.close());

  it('presents to a registered relying party', async () => {
    const signedRequest = request(authorities.registrar.certificate(REGISTERED));
    expect(await reader.checkRequest(chain, signedRequest)).to.equal('CN=Shop');
  });

  it('rejects a verifier with an access certificate of another CA, or without one', async () => {
    const signedRequest = request(authorities.registrar.certificate(REGISTERED));
    const otherCertificate = await certify({ name: 'Shop' });
    for (const chain of [[otherCertificate.certificate], []])
      expect(await refusal(reader.checkRequest(chain, signedRequest))).to.equal('the request is signed by nobody on the list');
  });

  it('rejects a verifier that is not registered for the requested claims', async () => {
    const { registrar } = authorities;
    expect(await refusal(reader.checkRequest(chain, { dcql_query: QUERY }))).to.equal('there is no registration certificate');
    const fewerClaims = REGISTERED.map((credential) => ({ ...credential, claims: [{ path: ['family_name'] }] }));
    expect(await refusal(reader.checkRequest(chain, request(registrar.certificate(fewerClaims))))).to.equal(
      'it is not registered for given_name',
    );
    const otherClaims = REGISTERED.map((credential) => ({ ...credential, meta: { vct_values: ['urn:pid:2'] } }));
    expect(await refusal(reader.checkRequest(chain, request(registrar.certificate(otherClaims))))).to.equal(
      'the relying party is not registered for this credential',
    );
    const [header, payload, signature = ''] = registrar.certificate(REGISTERED).split('.');
    const corruptSignature = `${signature[0] === 'A' ? 'B' : 'A'}${signature.slice(1)}`;
    expect(await refusal(reader.checkRequest(chain, request([header, payload, corruptSignature].join('.'))))).to.include(
      'signature verification failed',
    );
  });

  it('rejects a list with a foreign signature', async () => {
    const otherOperator = await certify({ name: 'Scheme Operator' });
    const loading = StrictReader.load(authorities.listAddress, otherOperator.certificate);
    expect(await refusal(loading)).to.include('signature verification failed');
  });
});
