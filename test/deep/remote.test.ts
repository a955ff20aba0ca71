import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { AddressGuard } from '../../adapters/remote/address-guard.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { RemoteError, type RemoteFault } from '../../application/ports/remote.ts';
import { makeServerCertificate } from '../support/server-certificate.ts';

const GET = { tenantId: 'acme', method: 'GET', timeoutMs: 2000, maxBytes: 1024 } as const;

async function faultOrStatus(client: GuardedHttpClient, url: string, options: object = {}): Promise<RemoteFault | number> {
  try {
    return (await client.request(url, { ...GET, ...options })).status;
  } catch (error) {
    if (error instanceof RemoteError) return error.fault;
    throw error;
  }
}

const responses: Record<string, RequestListener> = {
  '/echo': (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, headers } = request;
      response.writeHead(201, { 'content-type': 'Application/JSON; charset=utf-8' });
      response.end(JSON.stringify({ method, headers, body: Buffer.concat(chunks).toString() }));
    });
  },
  '/silent': () => {},
  '/slow': (_request, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write('.'), 20);
    response.on('close', () => clearInterval(timer));
  },
  '/announced': (_request, response) => {
    response.writeHead(200, { 'content-length': '1000000' });
    response.end(Buffer.alloc(1_000_000));
  },
  '/endless': (_request, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(Buffer.alloc(4096)), 1);
    response.on('close', () => clearInterval(timer));
  },
  '/exact': (_request, response) => response.end(Buffer.alloc(1024)),
  '/moved': (_request, response) => response.writeHead(302, { location: '/echo' }).end('elsewhere'),
  '/unchanged': (_request, response) => response.writeHead(304).end(),
  '/broken': (request) => request.socket.destroy(),
};

describe('GuardedHttpClient', () => {
  let server: Server;
  let port: number;
  let requestCount = 0;
  const openClients: GuardedHttpClient[] = [];

  function client(allow: readonly string[], addresses?: Record<string, readonly string[]>): GuardedHttpClient {
    const resolve = async (host: string) =>
      (addresses?.[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    const httpClient = new GuardedHttpClient(addresses === undefined ? { allow } : { allow, resolve });
    openClients.push(httpClient);
    return httpClient;
  }

  before((resolve) => {
    server = createServer((request, response) => {
      requestCount++;
      (responses[request.url ?? ''] ?? ((_request, fallbackResponse) => fallbackResponse.writeHead(404).end()))(request, response);
    });
    server.listen(0, '127.0.0.1', () => {
      port = (server.address() as AddressInfo).port;
      resolve();
    });
  });

  after(async () => {
    server.closeAllConnections();
    await Promise.all(openClients.map((each) => each.close()));
    server.close();
  });

  describe('with the loopback network on its allow list', () => {
    const url = (path: string) => `http://127.0.0.1:${port}${path}`;
    let local: GuardedHttpClient;
    before(() => {
      local = client(['127.0.0.1/32']);
    });

    it('returns status, media type and body', async () => {
      const headers = { 'x-key': 'k' };
      const answer = await local.request(url('/echo'), { ...GET, method: 'POST', headers, body: 'hello' });
      expect(answer.status).to.equal(201);
      expect(answer.contentType).to.equal('application/json');
      const echoedRequest = JSON.parse(answer.body.toString()) as { method: string; headers: object; body: string };
      expect(echoedRequest).to.include({ method: 'POST', body: 'hello' });
      expect(echoedRequest.headers).to.include({ 'x-key': 'k', 'accept-encoding': 'identity' });
    });

    it('accepts any status except redirects as a response', async () => {
      expect(await faultOrStatus(local, url('/none'))).to.equal(404);
      expect(await faultOrStatus(local, url('/unchanged'))).to.equal(304);
      const hitsBefore = requestCount;
      expect(await faultOrStatus(local, url('/moved'))).to.equal('redirected');
      expect(await faultOrStatus(local, url('/moved'), { method: 'POST', body: '{}' })).to.equal('redirected');
      expect(requestCount).to.equal(hitsBefore + 2);
    });

    it('limits the time of a silent and of a slow server', async () => {
      const start = performance.now();
      expect(await faultOrStatus(local, url('/silent'), { timeoutMs: 100 })).to.equal('timeout');
      expect(await faultOrStatus(local, url('/slow'), { timeoutMs: 150 })).to.equal('timeout');
      expect(performance.now() - start).to.be.lessThan(1000);
    });

    it('limits the size of an announced and of an endless response', async () => {
      expect(await faultOrStatus(local, url('/announced'))).to.equal('too_large');
      expect(await faultOrStatus(local, url('/endless'))).to.equal('too_large');
      expect(await faultOrStatus(local, url('/exact'))).to.equal(200);
      expect(await faultOrStatus(local, url('/exact'), { maxBytes: 1023 })).to.equal('too_large');
    });

    it('reports that no server answers', async () => {
      expect(await faultOrStatus(local, url('/broken'))).to.equal('unreachable');
      expect(await faultOrStatus(local, 'http://127.0.0.1:1/')).to.equal('unreachable');
    });

    it('recognizes the allowed address in its other spellings', async () => {
      for (const host of ['2130706433', '0x7f.1', '0177.0.0.1', '[::ffff:127.0.0.1]', 'localhost']) {
        const outcome = await faultOrStatus(client(['127.0.0.1/32', '::1/128']), `http://${host}:${port}/exact`);
        // A machine may have no route for mapped addresses, but the guard must not reject them.
        expect(outcome, host).to.not.equal('refused_address');
      }
    });

    it('rejects credentials in the address', async () => {
      expect(await faultOrStatus(local, `http://user:secret@127.0.0.1:${port}/exact`)).to.equal('refused_address');
    });

    it('limits how many calls wait for one origin', async () => {
      const outcomes = await Promise.all(Array.from({ length: 140 }, () => faultOrStatus(local, url('/silent'), { timeoutMs: 300 })));
      expect(outcomes.filter((outcome) => outcome === 'busy')).to.have.length(12);
      expect(outcomes.filter((outcome) => outcome === 'timeout')).to.have.length(128);
      expect(await faultOrStatus(local, url('/exact'))).to.equal(200);
    });
  });

  describe('with very many origins of one owner', () => {
    const createManyClient = (): GuardedHttpClient => {
      const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
      const httpClient = new GuardedHttpClient({ allow: ['127.0.0.1/32'], resolve });
      openClients.push(httpClient);
      return httpClient;
    };
    const origins = (count: number) => Array.from({ length: count }, (_, index) => `http://n${index}.example:${port}`);

    it('limits them to their share, so that the calls of other owners continue', async () => {
      const crowdedClient = createManyClient();
      const silentCalls = origins(1_200).map((origin) => faultOrStatus(crowdedClient, `${origin}/silent`, { timeoutMs: 2_000 }));
      await new Promise((resolve) => setTimeout(resolve, 500));
      const start = performance.now();
      const otherTenantOptions = { tenantId: 'innocent' };
      expect(await faultOrStatus(crowdedClient, `http://innocent.example:${port}/exact`, otherTenantOptions)).to.equal(200);
      expect(performance.now() - start).to.be.lessThan(500);
      const outcomes = await Promise.all(silentCalls);
      expect(outcomes.filter((outcome) => outcome === 'busy')).to.have.length(1_200 - 256 - 768);
      expect(outcomes.filter((outcome) => outcome === 'timeout')).to.have.length(256 + 768);
    });

    it('keeps a bounded number of idle connections', async () => {
      const connections = () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
      const crowdedClient = createManyClient();
      const connectionsBefore = await connections();
      for (const origin of origins(700)) expect(await faultOrStatus(crowdedClient, `${origin}/exact`)).to.equal(200);
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect((await connections()) - connectionsBefore).to.be.within(1, 520);
    });
  });

  describe('without an allow list', () => {
    const literalHosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0x7f000001',
      '0177.0.0.1',
      '017700000001',
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '169.254.169.254',
      '172.16.0.1',
      '192.168.1.1',
      '224.0.0.1',
      '255.255.255.255',
      '[::]',
      '[::1]',
      '[::7f00:1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::7f00:1]',
      '[64:ff9b:1::a00:1]',
      '[2002:7f00:1::]',
      '[2001:0:7f00:1::]',
      '[fc00::1]',
      '[fe80::1]',
      '[fec0::1]',
      '[ff02::1]',
      '[2001:db8::1]',
      'localhost',
      'LOCALHOST',
    ];
    for (const host of literalHosts) {
      it(`rejects ${host}, with http and with https`, async () => {
        const hitsBefore = requestCount;
        const strictClient = client([]);
        expect(await faultOrStatus(strictClient, `https://${host}:${port}/exact`)).to.equal('refused_address');
        expect(await faultOrStatus(strictClient, `http://${host}:${port}/exact`)).to.equal('refused_address');
        expect(requestCount).to.equal(hitsBefore);
      });
    }

    it('rejects a name that resolves to loopback, also when other addresses are public', async () => {
      const strictClient = client([], {
        'localhost.': ['127.0.0.1'],
        'evil.example': ['127.0.0.1'],
        'mixed.example': ['93.184.215.14', '::1'],
      });
      expect(await faultOrStatus(strictClient, `https://localhost.:${port}/exact`)).to.equal('refused_address');
      expect(await faultOrStatus(strictClient, `https://evil.example:${port}/exact`)).to.equal('refused_address');
      expect(await faultOrStatus(strictClient, `https://mixed.example:${port}/exact`)).to.equal('refused_address');
    });

    it('rejects http to public addresses', async () => {
      const strictClient = client([], { 'public.example': ['93.184.215.14'] });
      expect(await faultOrStatus(strictClient, 'http://public.example/')).to.equal('refused_address');
      expect(await faultOrStatus(strictClient, 'http://93.184.215.14/')).to.equal('refused_address');
    });

    it('rejects other schemes and invalid addresses', async () => {
      for (const url of ['file:///etc/passwd', 'ftp://host.example/', 'data:,x', 'nonsense', '']) {
        expect(await faultOrStatus(client([]), url), url).to.equal('refused_address');
      }
    });

    it('reports a name that does not resolve as unreachable', async () => {
      expect(await faultOrStatus(client([], {}), 'https://nowhere.example/')).to.equal('unreachable');
    });
  });

  it('finishes running calls when it is closed, and starts no more', async () => {
    const closingClient = client(['127.0.0.1/32']);
    const underWay = faultOrStatus(closingClient, `http://127.0.0.1:${port}/exact`);
    await closingClient.close();
    expect(await underWay).to.equal(200);
    expect(await faultOrStatus(closingClient, `http://127.0.0.1:${port}/exact`)).to.equal('busy');
  });

  it('connects to the addresses that it checked and resolves no others', async () => {
    let lookups = 0;
    const resolve = async () => [{ address: lookups++ === 0 ? '127.0.0.1' : '169.254.169.254', family: 4 }];
    const rebindingResolver = new GuardedHttpClient({ allow: ['127.0.0.1/32'], resolve });
    openClients.push(rebindingResolver);
    expect(await faultOrStatus(rebindingResolver, `http://rebind.example:${port}/exact`)).to.equal(200);
    expect(lookups).to.equal(1);
  });

  it('tries the next address when the first does not answer', async () => {
    const dualStackClient = client(['backend.example'], { 'backend.example': ['::1', '127.0.0.1'] });
    expect(await faultOrStatus(dualStackClient, `http://backend.example:${port}/exact`)).to.equal(200);
  });

  it('allows a listed host at any address, and only on the listed port', async () => {
    const names = { 'backend.example': ['127.0.0.1'], 'a.inner.example': ['127.0.0.1'], 'inner.example': ['127.0.0.1'] };
    const listedClient = client([`backend.example:${port}`, '*.inner.example'], names);
    expect(await faultOrStatus(listedClient, `http://backend.example:${port}/exact`)).to.equal(200);
    expect(await faultOrStatus(listedClient, `http://BACKEND.example.:${port}/exact`)).to.be.oneOf([200, 'unreachable']);
    expect(await faultOrStatus(listedClient, 'http://backend.example:1/exact')).to.equal('refused_address');
    expect(await faultOrStatus(listedClient, `http://a.inner.example:${port}/exact`)).to.equal(200);
    expect(await faultOrStatus(listedClient, `http://inner.example:${port}/exact`)).to.equal('refused_address');
  });

  it('never puts path or query into its messages', async () => {
    const error = await client([])
      .request(`https://127.0.0.1:${port}/path?key=secret`, GET)
      .catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(RemoteError).with.property('message').that.not.contains('secret');
  });

  it('checks the certificate of the named host, not of the address', async () => {
    const { key, cert } = await makeServerCertificate('secure.example');
    setDefaultCACertificates([...getCACertificates('default'), cert]);
    const secure = createSecureServer({ key, cert }, (_request, response) => response.end('secure'));
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const securePort = (secure.address() as AddressInfo).port;
    try {
      const names = { 'secure.example': ['127.0.0.1'], 'other.example': ['127.0.0.1'] };
      const listedClient = client(['127.0.0.0/8'], names);
      expect(await faultOrStatus(listedClient, `https://secure.example:${securePort}/`)).to.equal(200);
      expect(await faultOrStatus(listedClient, `https://other.example:${securePort}/`)).to.equal('unreachable');
      expect(await faultOrStatus(listedClient, `https://127.0.0.1:${securePort}/`)).to.equal('unreachable');
      const rejectionReason = (httpClient: GuardedHttpClient, url: string) =>
        httpClient.request(url, GET).then(
          ({ status }) => status,
          (error: RemoteError) => error.reason,
        );
      expect(await rejectionReason(listedClient, `https://other.example:${securePort}/`)).to.equal(
        'unreachable (TLS: the certificate of the server is for another host name)',
      );
      expect(await rejectionReason(listedClient, `https://secure.example:${port}/`)).to.equal(
        'unreachable (TLS: the server does not speak TLS at this port)',
      );
      expect(await rejectionReason(listedClient, 'https://secure.example:1/')).to.equal('unreachable (the connection was refused)');
      expect(await rejectionReason(listedClient, `http://secure.example:${port}/broken`)).to.match(
        /^unreachable \(the connection was (?:reset|closed before the response was complete)\)$/,
      );
      expect(await rejectionReason(listedClient, 'https://nowhere.example/')).to.match(/^unreachable \(DNS: /);
      expect(await rejectionReason(client([]), `https://127.0.0.1:${securePort}/`), 'says no more').to.equal('refused_address');
    } finally {
      secure.closeAllConnections();
      secure.close();
    }
  });
});

describe('GuardedHttpClient for signed content', () => {
  it('calls no internal address without TLS, for any name', async () => {
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const client = new GuardedHttpClient({ allow: [], resolve });
    try {
      for (const url of ['http://ca.example/', 'http://127.0.0.1/', 'http://ca.example:8080/']) {
        expect(await faultOrStatus(client, url, { isSigned: true }), url).to.equal('refused_address');
      }
    } finally {
      await client.close();
    }
  });
});

describe('AddressGuard', () => {
  it('classifies global unicast addresses as public, also translated ones', () => {
    const guard = new AddressGuard([]).forTenant('acme');
    for (const address of ['93.184.215.14', '2606:2800:21f:cb07::1', '::ffff:8.8.8.8', '64:ff9b::808:808']) {
      expect(guard.isPublic(address), address).to.equal(true);
    }
    expect(guard.isPublic('not an address')).to.equal(false);
  });

  it('parses hosts, networks and addresses, with and without port', () => {
    const guard = new AddressGuard(['Backend.Example', '10.0.0.0/8', '192.168.0.1:8080', '[fd00::1]:443', '::1']).forTenant('acme');
    expect(guard.isListedHost('backend.example', 1)).to.equal(true);
    expect(guard.isListedHost('xbackend.example', 1)).to.equal(false);
    expect(guard.isListedAddress('10.200.0.1', 1)).to.equal(true);
    expect(guard.isListedAddress('::ffff:10.0.0.1', 1)).to.equal(true);
    expect(guard.isListedAddress('11.0.0.1', 1)).to.equal(false);
    expect(guard.isListedAddress('192.168.0.1', 8080)).to.equal(true);
    expect(guard.isListedAddress('192.168.0.1', 80)).to.equal(false);
    expect(guard.isListedAddress('fd00::1', 443)).to.equal(true);
    expect(guard.isListedAddress('fd00::1', 80)).to.equal(false);
    expect(guard.isListedAddress('::1', 80)).to.equal(true);
  });

  it('fetches signed content without TLS only from public addresses and port 80', () => {
    const emptyGuard = new AddressGuard([]);
    const [signedGuard, plainGuard] = [emptyGuard.forTenant('acme', true), emptyGuard.forTenant('acme')];
    const target = { host: 'ca.example', port: 80, protocol: 'http:' };
    expect(signedGuard.permits(target, '93.184.215.14')).to.equal(true);
    expect(plainGuard.permits(target, '93.184.215.14')).to.equal(false);
    for (const address of ['127.0.0.1', '10.0.0.2', '169.254.169.254', '::1', 'fd00::1', '::ffff:10.0.0.2']) {
      expect(signedGuard.permits(target, address), address).to.equal(false);
    }
    expect(signedGuard.permits({ ...target, port: 25 }, '93.184.215.14')).to.equal(false);
    for (const url of ['http://93.184.215.14/ca.crl', 'http://ca.example/ca.crl']) {
      expect([signedGuard.refuses(url), plainGuard.refuses(url.replace('ca.example', '8.8.8.8'))], url).to.deep.equal([false, true]);
    }
    for (const url of [
      'http://93.184.215.14:8080/ca.crl',
      'http://127.0.0.1/ca.crl',
      'http://localhost/ca.crl',
      'http://metadata.google.internal/ca.crl',
      'ldap://93.184.215.14/ca.crl',
      'ftp://ca.example:80/ca.crl',
    ]) {
      expect(signedGuard.refuses(url), url).to.equal(true);
    }
  });

  describe('without a name server', () => {
    const guard = new AddressGuard(['backend.internal', '*.cluster.example:8080', '10.1.0.0/16', '[::1]:9000']).forTenant('acme');
    const resolverlessGuard = new AddressGuard(['backend.internal']).forTenant('acme');
    const rejectedUrls = [
      'https://127.0.0.1/claims',
      'https://10.0.0.1/claims',
      'https://169.254.169.254/latest',
      'https://[fe80::1]/claims',
      'https://[::ffff:10.0.0.1]/claims',
      'https://0x7f.1/claims',
      'https://localhost/claims',
      'https://localhost./claims',
      'https://api.localhost:8443/claims',
      'https://[::1]:9001/claims',
      'http://93.184.215.14/claims',
      'ftp://backend.internal/claims',
      'no address',
    ];
    const acceptedUrls = [
      'https://backend.example/claims',
      'https://93.184.215.14/claims',
      'http://backend.internal:8080/claims',
      'http://10.1.2.3:8080/claims',
      'http://a.cluster.example:8080/claims',
      'http://localhost:9000/claims',
    ];

    it('rejects addresses that can never be called', () => {
      for (const url of rejectedUrls) expect(guard.refuses(url), url).to.equal(true);
    });

    it('accepts public and listed addresses, and names that need a lookup', () => {
      for (const url of acceptedUrls) expect(guard.refuses(url), url).to.equal(false);
    });

    it('rejects http to a name that is not listed, unless it may resolve into a listed network', () => {
      expect(resolverlessGuard.refuses('http://backend.example/claims')).to.equal(true);
      expect(guard.refuses('http://backend.example/claims')).to.equal(false);
    });
  });

  it('rejects an entry that it cannot parse', () => {
    for (const entry of ['', '*', '*.', 'https://a.example', 'a.example/path', '10.0.0.0/33', '127.1', '1.2.3.4.5', 'a b']) {
      expect(() => new AddressGuard([entry]), entry).to.throw('OUTBOUND_ALLOW');
    }
  });
});
