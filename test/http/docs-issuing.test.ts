import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const TEXT = readFileSync(new URL('../../docs/issuing.md', import.meta.url), 'utf8');
const ALL = [...TEXT.matchAll(/^```json$/gm)].length;
const REQUESTS = [...TEXT.matchAll(/^`(POST|PATCH|PUT) (\/\S+)`\n```json\n([\s\S]*?)\n```$/gm)];
const TRANSACTION = '<transactionId>';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\\n/;

describe('the walk through issuing', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let port: number;
  let backend: ChildProcess | undefined;

  before(async () => {
    port = await freePort(createServer);
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    backend = await startBackend();
  });
  after(async () => {
    backend?.kill();
    await service.close();
  });

  /** The backend as it stands in the document, on another port. */
  async function startBackend(): Promise<ChildProcess> {
    const [, code = ''] = /^```js\n([\s\S]*?)\n```$/m.exec(TEXT) ?? [];
    const started = spawn(process.execPath, ['--input-type=module'], {
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    started.stdin?.end(code.replace('8080', String(port)));
    while (!(await isListening())) {
      if (started.exitCode !== null) throw new Error('the backend of the document does not run');
      await setTimeout(20);
    }
    return started;
  }
  const isListening = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  /** A body of the document, with the addresses and a certificate of this service. */
  const bodyOf = (text: string, certificate: string) =>
    JSON.parse(
      text
        .replaceAll('https://issuer.example', service.address)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
        .replace(CERTIFICATE, JSON.stringify(certificate).slice(1, -1)),
    );
  /** The wallet that comes for an offer and is told to wait. */
  async function defer({ uri, session }: { uri: string; session: string }) {
    const wallet = new RawWallet(service, tenant.id);
    const token = await wallet.accessToken(uri);
    const answer = await wallet.request(token, 'student');
    expect([answer.status, answer.body.interval], answer.text).to.deep.equal([202, 60]);
    const [{ transactionId }] = (await call('GET', `/issuer/deferred?session=${session}`)).body;
    expect(transactionId).to.equal(answer.body.transaction_id);
    const fetch = () =>
      service.call('POST', '/acme/deferred_credential', {
        headers: wallet.authorization(token, { path: 'deferred_credential' }),
        json: { transaction_id: transactionId },
      });
    return { transactionId, fetch };
  }

  it('can be walked: every request is taken, in its order', async () => {
    expect(REQUESTS, 'requests among all JSON').to.have.length(ALL).and.length.greaterThan(10);
    const certificate = (await call('GET', '/key-chain/signing')).body.rootCertificate;
    let last = { uri: '', session: '' };
    for (const [, method = '', path = '', text = ''] of REQUESTS) {
      const isDecision = path.includes(TRANSACTION);
      const deferral = isDecision ? await defer(last) : undefined;
      const address = path.replace(TRANSACTION, deferral?.transactionId ?? '');
      const answer = await call(method, address, bodyOf(text, certificate));
      expect(answer.status, `${path}: ${answer.text}`).to.equal(isDecision ? 200 : 201);
      if (path === '/issuer/offer') last = answer.body;
      if (deferral !== undefined) expect((await deferral.fetch()).status).to.equal(200);
    }
  });

  it('names fields that are described', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    const inputs: Record<string, string> = {
      '/issuer/credentials': 'CredentialConfigurationInput',
      '/issuer/config': 'IssuanceConfigurationInput',
      '/issuer/offer': 'OfferRequest',
      '/key-chain': 'KeyChainCreation',
    };
    for (const [, , path = '', text = ''] of REQUESTS) {
      const name = inputs[path];
      if (name === undefined) continue;
      expect(Object.keys(components.schemas[name].properties), path).to.include.members(
        Object.keys(JSON.parse(text)),
      );
    }
  });

  it('serves the type that it says is hosted', async () => {
    const type = await service.call('GET', '/acme/vct/library');
    expect(type.body).to.include({
      vct: `${service.address}/acme/vct/library`,
      name: 'Library card of Acme University',
    });
  });
});
