import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { createResource } from '../support/populated.ts';
import { makeJwt, newKey, now, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const display = [{ name: 'Issuer', locale: 'en' }];

describe('malicious wallet status list', () => {
  let service: TestService;
  let provider: WalletProvider;
  let server: Server;
  let address: string;
  let answer: (response: ServerResponse) => void;
  let requestCount = 0;

  before(async () => {
    provider = await WalletProvider.start();
    server = createServer((_request, response) => {
      requestCount++;
      answer(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    await createResource(service, token, '/issuer/config', {
      ...{ display, builtInAs: { walletInitiated: true } },
      ...provider.configuration(),
    });
    const config = { format: 'dc+sd-jwt', display, scope: 'card' };
    await createResource(service, token, '/issuer/credentials', { id: 'card', config, claims: { name: 'Ada' } });
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await service.close();
    await provider.close();
  });

  let lists = 0;
  /** Pushes a request of a wallet whose attestation references its own status list. */
  const pushWithStatusList = async (uri?: string) => {
    const wallet = new RawWallet(service, 'acme');
    const issuer = `${service.address}/acme`;
    const { attestation_challenge: challenge } = (await service.call('POST', '/acme/challenge')).body;
    const status = { status_list: { idx: 1, uri: uri ?? `${address}/${++lists}` } };
    const payload = { client_status: { status } };
    const headers = provider.headers(newKey(), issuer, challenge, { attestation: { payload } });
    const startedAt = performance.now();
    const { status: code, body } = await wallet.par({ scope: 'card' }, headers);
    return { code, error: body.error, took: performance.now() - startedAt };
  };
  const REFUSED = [400, 'invalid_client_attestation'];
  const token = (lst: string, uri: string) => {
    const [signer] = provider.statusSigner;
    if (signer === undefined) throw new Error('this provider signs no list');
    const claims = { sub: uri, iat: now(), exp: now() + 600, status_list: { bits: 1, lst } };
    return makeJwt(signer, { alg: 'ES256', typ: 'statuslist+jwt', x5c: [signer.certificate] }, claims);
  };
  const send = (body: string | Buffer) => (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' });
    response.end(body);
  };

  it('of 50 MB is not read to its end', async () => {
    let sentBytes = 0;
    answer = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' });
      const sendMore = () => {
        while (sentBytes < 50e6 && !response.destroyed) {
          sentBytes += 65_536;
          if (!response.write(Buffer.alloc(65_536, 'x'))) return void response.once('drain', sendMore);
        }
        response.end();
      };
      sendMore();
    };
    const { code, error } = await pushWithStatusList();
    expect([code, error]).to.deep.equal(REFUSED);
    expect(sentBytes, 'except for buffers of sockets').to.be.lessThan(20e6);
  });

  it('of a few kilobytes that inflates to 64 MB is rejected', async () => {
    const inflationBomb = deflateSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 }).toString('base64url');
    const uri = `${address}/bomb`;
    answer = send(token(inflationBomb, uri));
    const { code, error } = await pushWithStatusList(uri);
    expect([code, error]).to.deep.equal(REFUSED);
  });

  it('that never answers is rejected within seconds, and then without another request', async () => {
    answer = () => {};
    const uri = `${address}/silent`;
    const [firstResponse, unrelatedResponse] = await Promise.all([pushWithStatusList(uri), pushWithStatusList(`${provider.url}/status/1`)]);
    expect([firstResponse.code, firstResponse.error]).to.deep.equal(REFUSED);
    expect(firstResponse.took).to.be.within(1_000, 9_000);
    expect([unrelatedResponse.code, unrelatedResponse.took < firstResponse.took], 'other requests do not wait').to.deep.equal([201, true]);
    const countBefore = requestCount;
    const repeatedResponse = await pushWithStatusList(uri);
    expect([repeatedResponse.code, repeatedResponse.took < 1_000, requestCount]).to.deep.equal([400, true, countBefore]);
  });

  it('that is sent byte by byte is rejected within seconds', async () => {
    answer = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' });
      const timer = setInterval(() => response.write('x'), 200);
      response.once('close', () => clearInterval(timer));
    };
    const { code, took } = await pushWithStatusList();
    expect([code, took < 9_000]).to.deep.equal([400, true]);
  });

  it('of another address or another issuer is ignored', async () => {
    const validList = deflateSync(Buffer.alloc(100)).toString('base64url');
    const uri = `${address}/mine`;
    answer = send(token(validList, `${address}/other`));
    expect((await pushWithStatusList(uri)).code).to.equal(400);
    answer = send(token(validList, `${address}/yours`).replace(/.{6}$/, 'AAAAAA'));
    expect((await pushWithStatusList(`${address}/yours`)).code).to.equal(400);
    answer = send(token(validList, `${address}/ours`));
    expect((await pushWithStatusList(`${address}/ours`)).code, 'that is right').to.equal(201);
  });

  it('at an internal address is never requested', async () => {
    const countBefore = requestCount;
    for (const uri of ['http://169.254.169.254/latest', 'http://[::1]:1/x', 'file:///etc/passwd', 'http://10.0.0.1/x']) {
      expect((await pushWithStatusList(uri)).code, uri).to.equal(400);
    }
    expect(requestCount).to.equal(countBefore);
  });
});
