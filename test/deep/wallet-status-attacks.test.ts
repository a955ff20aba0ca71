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
  let asked = 0;

  before(async () => {
    provider = await WalletProvider.start();
    server = createServer((_request, response) => {
      asked++;
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
  /** A wallet whose attestation names a list of its own. */
  const push = async (uri?: string) => {
    const wallet = new RawWallet(service, 'acme');
    const issuer = `${service.address}/acme`;
    const { attestation_challenge: challenge } = (await service.call('POST', '/acme/challenge')).body;
    const status = { status_list: { idx: 1, uri: uri ?? `${address}/${++lists}` } };
    const payload = { client_status: { status } };
    const headers = provider.headers(newKey(), issuer, challenge, { attestation: { payload } });
    const began = performance.now();
    const { status: code, body } = await wallet.par({ scope: 'card' }, headers);
    return { code, error: body.error, took: performance.now() - began };
  };
  const REFUSED = [400, 'invalid_client_attestation'];
  const token = (lst: string, uri: string) => {
    const [signer] = provider.statusSigner;
    if (signer === undefined) throw new Error('nobody signs');
    const claims = { sub: uri, iat: now(), exp: now() + 600, status_list: { bits: 1, lst } };
    return makeJwt(signer, { alg: 'ES256', typ: 'statuslist+jwt', x5c: [signer.certificate] }, claims);
  };
  const send = (body: string | Buffer) => (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' });
    response.end(body);
  };

  it('of 50 MB is not read to its end', async () => {
    let sent = 0;
    answer = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' });
      const more = () => {
        while (sent < 50e6 && !response.destroyed) {
          sent += 65_536;
          if (!response.write(Buffer.alloc(65_536, 'x'))) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    };
    const { code, error } = await push();
    expect([code, error]).to.deep.equal(REFUSED);
    expect(sent, 'but for what the sockets hold').to.be.lessThan(20e6);
  });

  it('of a few kilobytes that inflates to 64 MB is rejected', async () => {
    const bomb = deflateSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 }).toString('base64url');
    const uri = `${address}/bomb`;
    answer = send(token(bomb, uri));
    const { code, error } = await push(uri);
    expect([code, error]).to.deep.equal(REFUSED);
  });

  it('that never answers is rejected within seconds, and then without another request', async () => {
    answer = () => {};
    const uri = `${address}/silent`;
    const [first, besides] = await Promise.all([push(uri), push(`${provider.url}/status/1`)]);
    expect([first.code, first.error]).to.deep.equal(REFUSED);
    expect(first.took).to.be.within(1_000, 9_000);
    expect([besides.code, besides.took < first.took], 'nobody waits with it').to.deep.equal([201, true]);
    const before = asked;
    const again = await push(uri);
    expect([again.code, again.took < 1_000, asked]).to.deep.equal([400, true, before]);
  });

  it('that is sent byte by byte is rejected within seconds', async () => {
    answer = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' });
      const timer = setInterval(() => response.write('x'), 200);
      response.once('close', () => clearInterval(timer));
    };
    const { code, took } = await push();
    expect([code, took < 9_000]).to.deep.equal([400, true]);
  });

  it('of another address or another issuer is ignored', async () => {
    const good = deflateSync(Buffer.alloc(100)).toString('base64url');
    const uri = `${address}/mine`;
    answer = send(token(good, `${address}/other`));
    expect((await push(uri)).code).to.equal(400);
    answer = send(token(good, `${address}/yours`).replace(/.{6}$/, 'AAAAAA'));
    expect((await push(`${address}/yours`)).code).to.equal(400);
    answer = send(token(good, `${address}/ours`));
    expect((await push(`${address}/ours`)).code, 'that is right').to.equal(201);
  });

  it('at an internal address is never requested', async () => {
    const before = asked;
    for (const uri of ['http://169.254.169.254/latest', 'http://[::1]:1/x', 'file:///etc/passwd', 'http://10.0.0.1/x']) {
      expect((await push(uri)).code, uri).to.equal(400);
    }
    expect(asked).to.equal(before);
  });
});
