import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ProviderAnswer =
  | { readonly json: unknown; readonly status?: number }
  | ((response: ServerResponse, request: ReceivedRequest) => void);

export type ReceivedRequest = {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
};

export type SigningPair = {
  readonly kid: string | undefined;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
};

/** An OpenID provider whose responses a test can falsify; correct by default. */
export class MisbehavingProvider {
  readonly issuer: string;
  readonly requests: ReceivedRequest[] = [];
  readonly answers = new Map<string, ProviderAnswer>();
  readonly close: () => Promise<void>;
  keys: readonly SigningPair[] = [makeKey('key-1', 'ES256')];

  private constructor(issuer: string, close: () => Promise<void>) {
    this.issuer = issuer;
    this.close = close;
  }

  /** @param path path of the issuer, for example `/realms/acme`. */
  static async start(path = ''): Promise<MisbehavingProvider> {
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const { url = '', method = '', headers } = request;
        provider.#answer({ path: url, method, headers, body: Buffer.concat(parts).toString() }, response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const close = () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    const { port } = server.address() as AddressInfo;
    const provider = new MisbehavingProvider(`http://127.0.0.1:${port}${path}`, close);
    return provider;
  }

  metadata(extra: object = {}): object {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      jwks_uri: `${this.issuer}/jwks`,
      ...extra,
    };
  }

  /** @param path path below the issuer. */
  respondAt(path: string, answer: ProviderAnswer): void {
    this.answers.set(new URL(this.issuer).pathname.replace(/\/$/, '') + path, answer);
  }

  /** Counts the requests whose path has this suffix. */
  countRequests(suffix: string): number {
    return this.requests.filter(({ path }) => path.endsWith(suffix)).length;
  }

  /** A valid token with overrides; undefined removes a property. */
  token(overrides: { readonly header?: object; readonly claims?: object; readonly key?: SigningPair } = {}): string {
    const key = overrides.key ?? this.keys[0];
    if (key === undefined) throw new Error('no key');
    const now = Math.floor(Date.now() / 1000);
    const header = { alg: key.alg, ...(key.kid === undefined ? {} : { kid: key.kid }), ...overrides.header };
    const claims = { iss: this.issuer, sub: 'u-1', aud: 'client', exp: now + 300, iat: now, nonce: 'n-1', ...overrides.claims };
    return signCompact(key, header, claims);
  }

  #answer(request: ReceivedRequest, response: ServerResponse): void {
    this.requests.push(request);
    const path = request.path.replace(/\?.*$/, '');
    const answer = this.answers.get(path) ?? this.#standard(path);
    if (typeof answer === 'function') answer(response, request);
    else {
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer.json));
    }
  }

  #standard(path: string): ProviderAnswer {
    if (path.endsWith('/.well-known/openid-configuration')) return { json: this.metadata() };
    if (path.endsWith('/jwks')) return { json: { keys: this.keys.map(({ jwk }) => jwk) } };
    if (path.endsWith('/token')) return { json: { id_token: this.token(), access_token: 'opaque' } };
    return { json: { error: 'not_found' }, status: 404 };
  }
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

export function makeKey(kid: string | undefined, alg: string): SigningPair {
  const { privateKey } = alg.startsWith('ES')
    ? generateKeyPairSync('ec', { namedCurve: alg === 'ES256' ? 'P-256' : alg === 'ES384' ? 'P-384' : 'P-521' })
    : alg.startsWith('Ed')
      ? generateKeyPairSync('ed25519')
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' });
  return { kid, alg, privateKey, jwk: kid === undefined ? jwk : { ...jwk, kid } };
}

export function signCompact(key: SigningPair, header: object, payload: object): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${signatureOf(key, input)}`;
}

function signatureOf({ alg, privateKey }: SigningPair, input: string): string {
  const data = Buffer.from(input);
  if (alg.startsWith('Ed')) return sign(null, data, privateKey).toString('base64url');
  const hash = `sha${alg.slice(2)}`;
  const key = { key: privateKey, dsaEncoding: 'ieee-p1363' as const };
  // RSA_PKCS1_PSS_PADDING and, for PSS, a salt as long as the hash
  const pss = alg.startsWith('PS') ? { padding: 6, saltLength: -1 } : {};
  return sign(hash, data, { ...key, ...pss }).toString('base64url');
}

/** A token with a MAC whose secret is the public key (algorithm confusion). */
export function signWithPublicKeyAsSecret(provider: MisbehavingProvider, form: 'pem' | 'jwk'): string {
  const key = provider.keys[0];
  if (key === undefined) throw new Error('no key');
  const secret = form === 'jwk' ? JSON.stringify(key.jwk) : createPublicKey(key.privateKey).export({ type: 'spki', format: 'pem' });
  const [, claims] = provider.token().split('.');
  const input = `${encode({ alg: 'HS256', kid: key.kid })}.${claims}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

/** A token with the `none` algorithm (RFC 7518 section 3.6). */
export function makeUnsignedToken(provider: MisbehavingProvider): string {
  const [, claims] = provider.token().split('.');
  return `${encode({ alg: 'none' })}.${claims}.`;
}
