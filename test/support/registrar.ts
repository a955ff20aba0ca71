import { createPublicKey, randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { type HolderKey, makeJwt, now } from './raw-wallet.ts';
import { type CertifiedKey, certify, certifyKey } from './test-certificates.ts';

export const REGISTRAR_PASSWORD = 'password-at-the-registrar-in-the-clear';
export const REGISTRAR_SECRET = 'client-secret-at-the-registrar-in-the-clear';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type JsonProperties = Record<string, any>;

export type RegistrarCall = {
  readonly method: string;
  readonly path: string;
  /** Token of the `Authorization` header. */
  readonly token: string;
  readonly body: JsonProperties | undefined;
};

export type Login = { readonly username: string; readonly authorization: string | undefined; readonly token: string };

/** Responses that replace the default ones, by path prefix. */
export type RegistrarAnswer = (response: ServerResponse, request: IncomingMessage) => unknown;

/** Applies overrides; undefined removes a property. */
const withOverrides = (base: JsonProperties, changes: JsonProperties = {}) =>
  Object.fromEntries(Object.entries({ ...base, ...changes }).filter(([, value]) => value !== undefined));

/** A registrar with a login, which issues access and registration certificates; correct by default. */
export class TestRegistrar {
  readonly url: string;
  readonly close: () => Promise<void>;
  readonly ca: CertifiedKey;
  readonly signer: CertifiedKey;
  readonly logins: Login[] = [];
  readonly calls: RegistrarCall[] = [];
  readonly answers = new Map<string, RegistrarAnswer>();
  /** Registration certificates by id. */
  readonly issued = new Map<string, JsonProperties>();
  password = REGISTRAR_PASSWORD;
  /** Seconds. */
  tokenLifetime = 600;
  parties: JsonProperties[] = [{ id: 'party-1', name: 'Acme', VAT: 'DE123456789' }];
  /** Overrides of the next registration certificates. */
  header: JsonProperties = {};
  payload: JsonProperties = {};
  /** Signs registration certificates. */
  signedBy: CertifiedKey;
  /** Organization identifier in access certificates. */
  organizationIdentifier: string | undefined = 'VATDE-123456789';
  /** Key of access certificates in place of the requested one. */
  otherKey: HolderKey['jwk'] | undefined;
  /** Expiry of access certificates. */
  accessCertificateExpiry: string | undefined;
  readonly #tokens = new Map<string, number>();

  private constructor(url: string, close: () => Promise<void>, ca: CertifiedKey, signer: CertifiedKey) {
    this.url = url;
    this.close = close;
    this.ca = ca;
    this.signer = signer;
    this.signedBy = signer;
  }

  static async start(): Promise<TestRegistrar> {
    const ca = await certify({ name: 'Registrar CA', ca: true });
    const signer = await certify({ name: 'Registrar', by: ca });
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => void registrar.#answer(request, response, Buffer.concat(chunks).toString()));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    server.unref();
    const close = () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    const { port } = server.address() as AddressInfo;
    const registrar = new TestRegistrar(`http://127.0.0.1:${port}`, close, ca, signer);
    return registrar;
  }

  /** A login at this registrar as administrators configure it. */
  login(changes: JsonProperties = {}): JsonProperties {
    return withOverrides(
      {
        registrarUrl: `${this.url}/api`,
        oidcUrl: this.url,
        clientId: 'vidimus',
        username: 'acme',
        password: this.password,
        registrationCertificateDefaults: {
          privacy_policy: 'https://acme.example/privacy',
          support_uri: 'mailto:help@acme.example',
          purpose: [{ lang: 'en', content: 'Opening an account' }],
        },
      },
      changes,
    );
  }

  /** Revokes all access tokens. */
  revokeTokens(): void {
    this.#tokens.clear();
  }

  /** Returns the calls to one path. */
  callsTo(path: string): readonly RegistrarCall[] {
    return this.calls.filter((call) => call.path === path);
  }

  /**
   * A registration certificate for these requested credentials and provided attestations, with the configured overrides.
   */
  certificate(credentials: readonly JsonProperties[] | undefined, providedAttestations?: readonly JsonProperties[]): string {
    const iat = now();
    const header = { alg: 'ES256', typ: 'rc-wrp+jwt', x5c: [this.signedBy.certificate, this.ca.certificate], iat };
    const payload = {
      name: 'Acme',
      sub: 'VATDE-123456789',
      sub_ln: 'Acme Inc.',
      country: 'DE',
      registry_uri: this.url,
      entitlements: ['https://uri.etsi.org/19475/Entitlement/Service_Provider'],
      credentials: credentials?.map(({ claims, ...rest }) => ({ ...rest, claim: claims })),
      provides_attestations: providedAttestations,
      intended_use_id: randomUUID(),
      policy_id: ['0.4.0.19475.3.1'],
      iat,
      exp: iat + 30 * 86_400,
    };
    return makeJwt(this.signedBy, withOverrides(header, this.header), withOverrides(payload, this.payload));
  }

  async #answer(request: IncomingMessage, response: ServerResponse, text: string): Promise<unknown> {
    const path = request.url ?? '';
    const cannedAnswer = [...this.answers].find(([prefix]) => path.startsWith(prefix));
    if (path.startsWith('/api')) this.#record(request, path, text);
    if (cannedAnswer !== undefined) return cannedAnswer[1](response, request);
    if (path === '/.well-known/openid-configuration') return json(response, 200, this.#metadata());
    if (path === '/token') return this.#logIn(request, response, new URLSearchParams(text));
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    if ((this.#tokens.get(token) ?? 0) <= Date.now()) return json(response, 401, { error: 'invalid_token' });
    return this.#api(`${request.method} ${path.slice('/api'.length)}`, response, text);
  }

  #record(request: IncomingMessage, path: string, text: string): void {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const body = text === '' ? undefined : (JSON.parse(text) as JsonProperties);
    this.calls.push({ method: request.method ?? '', path: path.slice('/api'.length), token, body });
  }

  #metadata(): JsonProperties {
    return { issuer: this.url, token_endpoint: `${this.url}/token`, token_endpoint_auth_methods_supported: ['client_secret_basic'] };
  }

  #logIn(request: IncomingMessage, response: ServerResponse, form: URLSearchParams): unknown {
    const { authorization } = request.headers;
    const expectedHeader = `Basic ${Buffer.from(`vidimus:${REGISTRAR_SECRET}`).toString('base64')}`;
    const isClient = authorization === undefined ? form.get('client_id') === 'vidimus' : authorization === expectedHeader;
    if (!isClient) return json(response, 401, { error: 'invalid_client' });
    if (form.get('grant_type') !== 'password') return json(response, 400, { error: 'unsupported_grant_type' });
    if (form.get('password') !== this.password) {
      // A provider may send more properties than required.
      return json(response, 400, { error: 'invalid_grant', error_description: `not ${form.get('password')}` });
    }
    const token = randomBytes(24).toString('base64url');
    this.#tokens.set(token, Date.now() + this.tokenLifetime * 1000);
    this.logins.push({ username: form.get('username') ?? '', authorization, token });
    return json(response, 200, { access_token: token, token_type: 'Bearer', expires_in: this.tokenLifetime });
  }

  async #api(call: string, response: ServerResponse, text: string): Promise<unknown> {
    const body = text === '' ? {} : (JSON.parse(text) as JsonProperties);
    if (call === 'GET /relying-parties') return json(response, 200, this.parties);
    if (call === 'POST /access-certificates') return json(response, 201, await this.#certify(body));
    if (call === 'POST /registration-certificates') {
      const { id } = this.register(body['credentials'], body['rpId'], body['provided_attestations']);
      return json(response, 201, this.issued.get(id));
    }
    const [, id = ''] = /^GET \/registration-certificates\/(.+)$/.exec(call) ?? [];
    const issuedCertificate = this.issued.get(decodeURIComponent(id));
    return issuedCertificate === undefined ? json(response, 404, { message: 'unknown' }) : json(response, 200, issuedCertificate);
  }

  /** Issues a registration certificate. */
  register(
    credentials: readonly JsonProperties[] | undefined,
    relyingPartyId = 'party-1',
    providedAttestations?: readonly JsonProperties[],
  ): { id: string; jwt: string } {
    const id = randomUUID();
    const jwt = this.certificate(credentials, providedAttestations);
    this.issued.set(id, { id, jwt, cwt: 'aa', intendedUse: 'x', relyingPartyId, revoked: null });
    return { id, jwt };
  }

  async #certify({ publicKey, dns }: JsonProperties): Promise<JsonProperties> {
    const jwk = createPublicKey(publicKey).export({ format: 'jwk' }) as HolderKey['jwk'];
    const leaf = await certifyKey(this.otherKey ?? jwk, {
      name: 'Acme',
      by: this.ca,
      dns,
      ...(this.organizationIdentifier !== undefined && { organizationIdentifier: this.organizationIdentifier }),
      ...(this.accessCertificateExpiry !== undefined && { until: this.accessCertificateExpiry }),
    });
    return { id: randomUUID(), crt: writePemCertificates([leaf, this.ca.certificate]) };
  }
}

function json(response: ServerResponse, status: number, body: unknown): ServerResponse {
  return response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

let sharedInstance: Promise<TestRegistrar> | undefined;

/** A shared registrar for tests that only need one. It does not keep the process alive. */
export function sharedRegistrar(): Promise<TestRegistrar> {
  sharedInstance ??= TestRegistrar.start();
  return sharedInstance;
}
