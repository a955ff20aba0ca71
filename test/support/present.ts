import { createHash, verify, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, importJWK } from 'jose';
import { Backend } from './backend.ts';
import { type HolderKey, makeJwt, newKey, now, RawWallet } from './raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from './test-service.ts';

// biome-ignore lint/suspicious/noExplicitAny: tokens of every shape
type JsonProperties = Record<string, any>;

export type HeldCredential = { readonly text: string; readonly holder: HolderKey; readonly session: string };

export type FetchedRequest = {
  readonly session: string;
  readonly uri: string;
  readonly url: string;
  readonly text: string;
  readonly header: JsonProperties;
  readonly payload: JsonProperties;
};

/** Decodes header and payload of a compact token without verification. */
export function decode(text: string): { header: JsonProperties; payload: JsonProperties } {
  const [header = '', payload = ''] = text.split('.');
  const parsePart = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as JsonProperties;
  return { header: parsePart(header), payload: parsePart(payload) };
}

/** Verifies an ES256 token with the leaf of its `x5c`, independently of the product. */
export function verifyWithLeaf(text: string): X509Certificate {
  const { header } = decode(text);
  const leaf = new X509Certificate(Buffer.from(header['x5c'][0], 'base64'));
  const [jwsHeader, body, signature = ''] = text.split('.');
  const key = { key: leaf.publicKey, dsaEncoding: 'ieee-p1363' } as const;
  const isValid = verify('sha256', Buffer.from(`${jwsHeader}.${body}`), key, Buffer.from(signature, 'base64url'));
  expect(isValid, 'the signature').to.equal(true);
  return leaf;
}

type Issuer = { readonly id: string; readonly token: string };

/** Creates an offer and redeems it. */
/** @param isPatient whether the wallet waits until its fetch of the offer is stored. */
export async function issue(
  service: TestService,
  tenant: Issuer,
  configurationId: string,
  offer: object = {},
  isPatient = false,
): Promise<HeldCredential> {
  const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [configurationId], ...offer };
  const offerResponse = await service.call('POST', '/issuer/offer', { token: tenant.token, json });
  expect(offerResponse.status, offerResponse.text).to.equal(201);
  const wallet = new RawWallet(service, tenant.id);
  const holder = newKey();
  if (isPatient) {
    await wallet.code(offerResponse.body.uri);
    const session = await service.call('GET', `/session/${offerResponse.body.session}`, { token: tenant.token });
    expect(session.body.status).to.equal('fetched');
  }
  const accessToken = await wallet.accessToken(offerResponse.body.uri);
  const credentialResponse = await wallet.request(accessToken, configurationId, { key: holder });
  expect(credentialResponse.status, credentialResponse.text).to.equal(200);
  return { text: credentialResponse.body.credentials[0].credential, holder, session: offerResponse.body.session };
}

/** Creates a presentation request and fetches it as a wallet does. */
export async function requestPresentation(
  service: TestService,
  token: string,
  requestId: string,
  overrides: object = {},
): Promise<FetchedRequest> {
  const offer = await service.call('POST', '/verifier/offer', { token, json: { response_type: 'uri', requestId, ...overrides } });
  expect(offer.status, offer.text).to.equal(201);
  const url = new URL(offer.body.uri).searchParams.get('request_uri') ?? '';
  const requestResponse = await service.call('GET', url);
  expect(requestResponse.status, requestResponse.text).to.equal(200);
  const { session, uri } = offer.body;
  return { session, uri, url, text: requestResponse.text, ...decode(requestResponse.text) };
}

/** The credential with the disclosures of the named claims, bound to the request (RFC 9901 section 4.3). */
export function bindToRequest(
  request: Pick<FetchedRequest, 'payload'>,
  credential: HeldCredential,
  names?: readonly string[],
  changes: object = {},
): string {
  const [jwt = '', ...disclosures] = credential.text.split('~').slice(0, -1);
  const keptDisclosures = disclosures.filter((disclosure) => {
    const disclosureParts = JSON.parse(Buffer.from(disclosure, 'base64url').toString()) as unknown[];
    return names === undefined || disclosureParts.length === 2 || names.includes(String(disclosureParts[1]));
  });
  const presentation = [jwt, ...keptDisclosures, ''].join('~');
  const payload = {
    iat: now(),
    aud: request.payload['client_id'],
    nonce: request.payload['nonce'],
    sd_hash: createHash('sha256').update(presentation).digest('base64url'),
    ...changes,
  };
  return presentation + makeJwt(credential.holder, { alg: 'ES256', typ: 'kb+jwt' }, payload);
}

/** Encrypts a response to the key of the request. */
export async function encryptResponse(request: Pick<FetchedRequest, 'payload'>, plaintext: unknown): Promise<string> {
  const [jwk] = request.payload['client_metadata'].jwks.keys;
  return new CompactEncrypt(Buffer.from(JSON.stringify(plaintext)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk.kid })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}

/** The form of a response in the requested response mode. */
export async function responseForm(request: FetchedRequest, vpToken: unknown): Promise<Record<string, string>> {
  const { state, response_mode: responseMode } = request.payload;
  if (responseMode === 'direct_post') return { vp_token: JSON.stringify(vpToken), state };
  return { response: await encryptResponse(request, { vp_token: vpToken, state }) };
}

export function postResponse(service: TestService, request: FetchedRequest, form: Record<string, string>): Promise<Answer> {
  return service.call('POST', request.payload['response_uri'], { form });
}

/** Answers the single query of the request with one credential. */
export async function present(service: TestService, request: FetchedRequest, credential: HeldCredential): Promise<Answer> {
  const [query] = request.payload['dcql_query'].credentials;
  return postResponse(service, request, await responseForm(request, { [query.id]: [bindToRequest(request, credential)] }));
}

export const QUERY = {
  credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] }, claims: [{ path: ['name'] }] }],
};

const CARD = {
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada', age: 36 },
  disclosureFrame: { _sd: ['name', 'age'] },
};

/** An issuer `acme` and a verifier `shop` that trusts it, two tenants of one service. */
export class Shop {
  readonly service: TestService;
  readonly backend: Backend;
  readonly acme: Issuer;
  readonly token: string;
  /** The CA certificate of the issuer, PEM. */
  readonly anchor: string;

  private constructor(disclosureParts: Pick<Shop, 'service' | 'backend' | 'acme' | 'token' | 'anchor'>) {
    this.service = disclosureParts.service;
    this.backend = disclosureParts.backend;
    this.acme = disclosureParts.acme;
    this.token = disclosureParts.token;
    this.anchor = disclosureParts.anchor;
  }

  /**
   * Creates the presentation configuration `check` and two credential configurations; `card-status` has a revocable status.
   */
  static async open(issuer: Record<string, unknown> = {}, startService = () => startTestService()): Promise<Shop> {
    const service = await startService();
    const backend = await Backend.start();
    const acme = await createTenant(service, 'acme', issuer);
    const { token } = await createTenant(service, 'shop');
    const callAsIssuer = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: acme.token, ...(json === undefined ? {} : { json }) });
    await callAsIssuer('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    for (const overrides of [{ id: 'card' }, { id: 'card-status', statusManagement: true }]) {
      const response = await callAsIssuer('POST', '/issuer/credentials', { ...CARD, ...overrides });
      expect(response.status, response.text).to.equal(201);
    }
    const anchor = (await callAsIssuer('GET', '/key-chain/signing')).body.rootCertificate;
    const shop = new Shop({ service, backend, acme, token, anchor });
    await shop.configure({ id: 'check' });
    return shop;
  }

  /** @returns the same tenants on a service whose database is a copy. */
  async withService(service: TestService): Promise<Shop> {
    return new Shop({ ...this, service, backend: await Backend.start() });
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.backend.close();
  }

  call(method: string, path: string, json?: unknown, token = this.token): Promise<Answer> {
    return this.service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  }

  /** Creates a presentation configuration that trusts the issuer by default. */
  async configure(changes: object): Promise<void> {
    const defaults = { dcql_query: QUERY, trustAnchors: [{ certificate: this.anchor }], values: 'requested' };
    const response = await this.call('POST', '/verifier/config', { ...defaults, ...changes });
    expect(response.status, response.text).to.equal(201);
  }

  issue(configurationId = 'card', offer: object = {}): Promise<HeldCredential> {
    return issue(this.service, this.acme, configurationId, offer);
  }

  requestPresentation(requestId = 'check', overrides: object = {}): Promise<FetchedRequest> {
    return requestPresentation(this.service, this.token, requestId, overrides);
  }

  present(request: FetchedRequest, credential: HeldCredential): Promise<Answer> {
    return present(this.service, request, credential);
  }

  postResponse(request: FetchedRequest, form: Record<string, string>): Promise<Answer> {
    return postResponse(this.service, request, form);
  }

  async session(id: string): Promise<JsonProperties> {
    return (await this.call('GET', `/session/${id}`)).body;
  }
}

export type PresentationRequest = {
  readonly client_id: string;
  readonly nonce: string;
  readonly state: string;
  readonly response_uri: string;
  readonly dcql_query: { readonly credentials: readonly { readonly id: string }[] };
  readonly client_metadata: { readonly jwks: { readonly keys: readonly (Record<string, string> & { kid: string })[] } };
};

/** Fetches a request object; another test verifies its signature. */
export async function fetchRequest(service: TestService, uri: string): Promise<PresentationRequest> {
  const requestUri = new URL(uri).searchParams.get('request_uri') ?? '';
  const answer = await service.call('GET', requestUri);
  if (answer.status !== 200) throw new Error(`request object: ${answer.status} ${answer.text}`);
  return JSON.parse(Buffer.from(answer.text.split('.')[1] ?? '', 'base64url').toString());
}

/** The form of a valid response: the credential with all its disclosures, bound to the request and encrypted. */
export async function makeResponse(request: PresentationRequest, credential: string, holder: HolderKey): Promise<Record<string, string>> {
  const binding = makeJwt(
    holder,
    { alg: 'ES256', typ: 'kb+jwt' },
    { iat: now(), aud: request.client_id, nonce: request.nonce, sd_hash: createHash('sha256').update(credential).digest('base64url') },
  );
  const presentation = credential + binding;
  const entries = request.dcql_query.credentials.map(({ id }) => [id, [presentation]]);
  const [key] = request.client_metadata.jwks.keys;
  if (key === undefined) throw new Error('the request names no key');
  const plaintext = JSON.stringify({ vp_token: Object.fromEntries(entries), state: request.state });
  const response = await new CompactEncrypt(new TextEncoder().encode(plaintext))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
    .encrypt(await importJWK(key, 'ECDH-ES'));
  return { response };
}
