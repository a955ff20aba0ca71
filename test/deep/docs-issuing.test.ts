import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { blocksOf, readPage, startScript, withCertificate } from '../support/docs-page.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readPage('issuing.md');
const TRANSACTION = '<transactionId>';

describe('the walk through issuing', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let port: number;
  let backend: ChildProcess | undefined;

  before(async () => {
    port = await freePort(createServer);
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    // The backend as it stands in the document, on another port.
    backend = await startScript(blocksOf(PAGE, 'js')[0] ?? '', port);
  });
  after(async () => {
    backend?.kill();
    await service.close();
  });

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  /** A body of the document, with the addresses and a certificate of this service. */
  const bodyOf = (text: string, certificate: string) =>
    JSON.parse(
      withCertificate(text, certificate)
        .replaceAll('https://issuer.example', service.address)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`),
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
    expect(PAGE.requests).to.have.length.greaterThan(10);
    const certificate = (await call('GET', '/key-chain/signing')).body.rootCertificate;
    let last = { uri: '', session: '' };
    for (const { method, path, text } of PAGE.requests) {
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
    for (const { path, text } of PAGE.requests) {
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
