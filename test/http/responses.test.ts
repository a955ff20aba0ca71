import { type IncomingHttpHeaders, request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { isPublished } from '../../adapters/http/output/published-texts.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { decode, issue } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('HEAD requests', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  it('are returned for routes whose GET only reads public data', async () => {
    for (const path of ['/', '/health', '/acme/.well-known/jwks.json']) {
      const answer = await service.call('HEAD', path);
      expect([answer.status, answer.text], path).to.deep.equal([200, '']);
    }
  });

  it('never have the effect of GET', async () => {
    const creation = await service.call('POST', '/client', { token, json: { clientId: 'once', roles: ['issuance:offer'] } });
    expect(creation.status, creation.text).to.equal(201);
    for (const path of ['/client/once/secret', '/session', '/client/once', '/acme/credential-offer/x']) {
      const answer = await service.call('HEAD', path, { token });
      expect(answer.status, path).to.equal(405);
      expect(answer.headers.get('allow'), path).to.match(/^GET/);
    }
    const secret = await service.call('GET', '/client/once/secret', { token });
    expect(secret.status, secret.text).to.equal(200);
    expect((await service.call('GET', '/client/once/secret', { token })).status).to.not.equal(200);
  });
});

const PAGE = 'https://wallet.example';

describe('scripts of other origins', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
    await createTenant(service, 'acme');
  });
  after(() => service.close());

  const preflight = (path: string, method: string) =>
    fetch(service.address + path, {
      method: 'OPTIONS',
      headers: {
        Origin: PAGE,
        'Access-Control-Request-Method': method,
        'Access-Control-Request-Headers': 'authorization,content-type,dpop',
      },
    });

  const WALLET_ROUTES: readonly (readonly [string, string])[] = [
    ['POST', '/acme/token'],
    ['POST', '/acme/par'],
    ['POST', '/acme/challenge'],
    ['POST', '/acme/nonce'],
    ['POST', '/acme/credential'],
    ['POST', '/acme/deferred_credential'],
    ['POST', '/acme/notification'],
    ['POST', '/acme/interactive-authorization'],
    ['POST', '/acme/chained-as/token'],
    ['POST', '/acme/request/x'],
    ['POST', '/acme/response/x'],
    ['POST', '/acme/dc-api/x'],
    ['GET', '/acme/credential-offer/x'],
    ['GET', '/acme/request/x'],
    ['GET', '/acme/status-list/x'],
    ['GET', '/acme/trust-list/x'],
    ['GET', '/.well-known/openid-credential-issuer/acme'],
    ['GET', '/.well-known/oauth-authorization-server/acme'],
    ['GET', '/acme/.well-known/jwks.json'],
  ];

  for (const [method, path] of WALLET_ROUTES) {
    it(`may call ${method} ${path} as wallets do and read the response`, async () => {
      const preflightResponse = await preflight(path, method);
      expect(preflightResponse.status).to.equal(204);
      expect(preflightResponse.headers.get('access-control-allow-origin')).to.equal('*');
      expect(preflightResponse.headers.get('access-control-allow-credentials')).to.equal(null);
      expect(preflightResponse.headers.get('access-control-allow-methods')).to.include(method);
      for (const name of ['Authorization', 'Content-Type', 'DPoP', 'OAuth-Client-Attestation']) {
        expect(preflightResponse.headers.get('access-control-allow-headers')).to.include(name);
      }
      const answer = await fetch(service.address + path, { method, headers: { Origin: PAGE } });
      expect(answer.headers.get('access-control-allow-origin'), 'also for rejections').to.equal('*');
      for (const name of ['DPoP-Nonce', 'WWW-Authenticate', 'Retry-After']) {
        expect(answer.headers.get('access-control-expose-headers')).to.include(name);
      }
    });
  }

  for (const [method, path] of [
    ['POST', '/oauth2/token'],
    ['GET', '/tenant'],
    ['POST', '/tenant'],
    ['GET', '/session'],
    ['POST', '/issuer/offer'],
    ['POST', '/verifier/offer'],
    ['DELETE', '/key-chain/x'],
    ['GET', '/acme/authorize'],
    ['POST', '/acme/authorize'],
    ['GET', '/health'],
  ] as const) {
    it(`may not call ${method} ${path}`, async () => {
      const preflightResponse = await preflight(path, method);
      expect(preflightResponse.headers.get('access-control-allow-origin')).to.equal(null);
      expect(preflightResponse.headers.get('access-control-allow-headers')).to.equal(null);
      const answer = await fetch(service.address + path, { method, headers: { Origin: PAGE } });
      expect(answer.headers.get('access-control-allow-origin')).to.equal(null);
    });
  }
});

type Raw = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly bytes: Buffer };

const LONG = 'A name that is long enough to be worth a few bytes. '.repeat(9);
const CWT = 'application/statuslist+cwt';
const DECODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  br: (bytes) => brotliDecompressSync(bytes),
  gzip: (bytes) => gunzipSync(bytes),
};

describe('compressed answers', () => {
  let service: TestService;
  let token: string;
  let published: string[];

  /** Uses a client that does not decompress by itself. */
  const send = (path: string, headers: Record<string, string>, method = 'GET') =>
    new Promise<Raw>((resolve, reject) => {
      const clientRequest = request(new URL(path, service.address), { method, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => {
          const { statusCode: status = 0, headers: responseHeaders } = response;
          resolve({ status, headers: responseHeaders, bytes: Buffer.concat(parts) });
        });
      });
      clientRequest.on('error', reject).end();
    });
  const inEncoding = (path: string, encoding: string, otherHeaders: Record<string, string> = {}) =>
    send(path, { 'Accept-Encoding': encoding, ...otherHeaders });

  before(async () => {
    service = await startTestService();
    const tenant = await createTenant(service, 'acme');
    ({ token } = tenant);
    const write = async (path: string, json: object) => {
      const answer = await service.call('POST', path, { token, json });
      expect(answer.status, answer.text).to.equal(201);
    };
    await write('/issuer/credentials', {
      id: 'card',
      config: { format: 'dc+sd-jwt', display: ['en', 'de', 'fr'].map((locale) => ({ name: 'Card', locale, description: LONG })) },
      vct: { name: 'Card', description: LONG },
      schema: { type: 'object', properties: { name: { type: 'string', description: LONG.repeat(4) } } },
      claims: { name: 'Ada' },
      statusManagement: true,
    });
    await write('/issuer/config', {
      display: [{ name: 'Acme', locale: 'en' }],
      chainedAs: { enabled: true, upstream: { issuer: 'https://login.example', clientId: 'us', clientSecret: 'secret' } },
    });
    await write('/trust-list', { id: 'list', entities: [await createEntity(tenant)] });
    const { uri } = decode((await issue(service, tenant, 'card')).text).payload['status'].status_list;
    published = [
      '/.well-known/openid-credential-issuer/acme',
      '/.well-known/oauth-authorization-server/acme',
      '/acme/vct/card',
      '/acme/schema/card',
      '/acme/trust-list/list',
      new URL(uri).pathname,
      '/openapi.json',
    ];
  });
  after(() => service.close());

  const createEntity = async (tenant: { readonly token: string }) => {
    const chains = (await service.call('GET', '/key-chain', { token: tenant.token })).body;
    const { id } = chains.find(({ usages }: { usages: string[] }) => usages.includes('signing'));
    return {
      type: 'internal',
      issuerKeyChainId: id,
      revocationKeyChainId: id,
      info: { name: 'Acme', country: 'DE', locality: 'Berlin', streetAddress: 'Weg 1', postalCode: '1' },
    };
  };

  it('are returned for public data, by the weights of the client, and equal the original after decompression', async () => {
    for (const path of published) {
      const identityResponse = await inEncoding(path, 'identity');
      expect([identityResponse.status, identityResponse.headers['content-encoding']], path).to.deep.equal([200, undefined]);
      for (const [acceptEncoding, encoding] of [
        ['gzip', 'gzip'],
        ['gzip, deflate, br', 'br'],
        ['br;q=0.1, gzip;q=0.2', 'gzip'],
      ] as const) {
        const answer = await inEncoding(path, acceptEncoding);
        expect([answer.status, answer.headers['content-encoding']], path).to.deep.equal([200, encoding]);
        expect(answer.bytes.length, path).to.be.lessThan(identityResponse.bytes.length);
        expect(DECODERS[encoding]?.(answer.bytes).equals(identityResponse.bytes), path).to.equal(true);
        expect(answer.headers['content-type']).to.equal(identityResponse.headers['content-type']);
        expect(answer.headers['content-length']).to.equal(String(answer.bytes.length));
      }
      for (const acceptEncoding of ['gzip;q=0', '*;q=0', 'zstd', 'identity, br;q=0.5']) {
        expect((await inEncoding(path, acceptEncoding)).headers['content-encoding'], acceptEncoding).to.equal(undefined);
      }
    }
  });

  it('have a Vary header for the encoding, besides the other headers', async () => {
    for (const path of published) {
      for (const encoding of ['br', 'identity']) {
        const vary = (await inEncoding(path, encoding)).headers.vary?.split(', ') ?? [];
        expect(vary, path).to.include('Accept-Encoding');
        if (path.includes('credential-issuer')) expect(vary).to.include.members(['Accept', 'Accept-Language']);
        if (path.includes('status-list')) expect(vary).to.include('Accept');
      }
    }
  });

  it('have the same headers for HEAD as for GET', async () => {
    for (const path of published) {
      const compressedResponse = await inEncoding(path, 'br');
      const head = await send(path, { 'Accept-Encoding': 'br' }, 'HEAD');
      expect([head.status, head.bytes.length]).to.deep.equal([200, 0]);
      for (const name of ['content-encoding', 'content-length', 'content-type', 'vary', 'etag'])
        expect(head.headers[name], `${name} of ${path}`).to.equal(compressedResponse.headers[name]);
    }
  });

  it('have an ETag for each encoding, which is valid only for this encoding', async () => {
    for (const path of published.filter((path) => /status-list|trust-list/.test(path))) {
      const tags = new Map<string, string>();
      for (const encoding of ['br', 'gzip', 'identity']) tags.set(encoding, (await inEncoding(path, encoding)).headers.etag ?? '');
      expect(new Set(tags.values()).size, path).to.equal(3);
      for (const [encoding, tag] of tags) {
        const notModified = await inEncoding(path, encoding, { 'If-None-Match': tag });
        expect([notModified.status, notModified.headers.etag, notModified.bytes.length]).to.deep.equal([304, tag, 0]);
        expect(notModified.headers).to.not.have.property('content-encoding');
        expect(notModified.headers.vary).to.include('Accept-Encoding');
        for (const [otherEncoding, otherTag] of tags) {
          const { status } = await inEncoding(path, encoding, { 'If-None-Match': otherTag });
          expect(status, `${otherEncoding} for ${encoding}`).to.equal(otherEncoding === encoding ? 304 : 200);
        }
      }
    }
  });

  it('exist for both forms of a status list, and for metadata in each language and signed', async () => {
    const [metadata = '', , , , , list = ''] = published;
    for (const [path, headers] of [
      [list, { Accept: CWT }],
      [metadata, { Accept: 'application/jwt' }],
      [metadata, { 'Accept-Language': 'en' }],
    ] as const) {
      const identityResponse = await inEncoding(path, 'identity', headers);
      const answer = await inEncoding(path, 'gzip', headers);
      const { 'content-encoding': encoding } = answer.headers;
      const decompressed = encoding === 'gzip' ? gunzipSync(answer.bytes) : answer.bytes;
      expect(decompressed.equals(identityResponse.bytes), path).to.equal(true);
      expect(answer.bytes.length).to.be.at.most(identityResponse.bytes.length);
      if (headers !== undefined && !('Accept' in headers && headers.Accept === CWT)) expect(encoding, path).to.equal('gzip');
    }
  });

  it('follow a change at once', async () => {
    const [metadata = ''] = published;
    const displayName = ({ bytes }: Raw) => JSON.parse(brotliDecompressSync(bytes).toString()).display[0].name;
    expect(displayName(await inEncoding(metadata, 'br'))).to.equal('Acme');
    const json = { display: [{ name: 'Acme anew', locale: 'en' }] };
    const answer = await service.call('POST', '/issuer/config', { token, json });
    expect(answer.status, answer.text).to.be.within(200, 201);
    expect(displayName(await inEncoding(metadata, 'br'))).to.equal('Acme anew');
  });

  it('are not used for small responses and for responses to authenticated callers', async () => {
    for (const path of ['/acme/.well-known/jwks.json', '/acme/status-lists']) {
      const answer = await inEncoding(path, 'br, gzip');
      expect([answer.status, answer.bytes.length < 1024], path).to.deep.equal([200, true]);
      expect(answer.headers, path).to.not.have.property('content-encoding');
    }
    for (const path of ['/issuer/credentials', '/key-chain']) {
      const answer = await inEncoding(path, 'br, gzip', { Authorization: `Bearer ${token}` });
      expect([answer.status, answer.bytes.length > 1024], path).to.deep.equal([200, true]);
      expect(answer.headers, path).to.not.have.property('content-encoding');
    }
    for (const route of collectRoutes(service.service.container).filter(isPublished))
      expect([route.method, route.access, route.body], route.path).to.deep.equal(['get', 'public', undefined]);
  });
});
