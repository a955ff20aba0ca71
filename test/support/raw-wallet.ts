import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import type { Answer, Callable } from './test-service.ts';

export type HolderKey = { readonly privateKey: KeyObject; readonly jwk: { kty: string; crv: string; x: string; y: string } };

export function newKey(namedCurve: 'P-256' | 'P-384' = 'P-256'): HolderKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' });
  return { privateKey, jwk: { kty: String(kty), crv: String(crv), x: String(x), y: String(y) } };
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs any header and payload as a JWT with ES256. */
export function makeJwt(key: HolderKey, header: object, payload: object): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

export const now = () => Math.floor(Date.now() / 1000);

export type Overrides = { readonly header?: Record<string, unknown>; readonly payload?: Record<string, unknown> };

/** Applies overrides; undefined removes a property. */
const withOverrides = (base: Record<string, unknown>, changes: Record<string, unknown> = {}) =>
  Object.fromEntries(Object.entries({ ...base, ...changes }).filter(([, value]) => value !== undefined));

export function dpopProof(key: HolderKey, url: string, options: { token?: string; method?: string } & Overrides = {}): string {
  const ath = options.token === undefined ? {} : { ath: createHash('sha256').update(options.token).digest('base64url') };
  return makeJwt(
    key,
    withOverrides({ typ: 'dpop+jwt', alg: 'ES256', jwk: key.jwk }, options.header),
    withOverrides({ jti: randomUUID(), htm: options.method ?? 'POST', htu: url, iat: now(), ...ath }, options.payload),
  );
}

export function keyProof(key: HolderKey, audience: string, nonce: string, overrides: Overrides = {}): string {
  return makeJwt(
    key,
    withOverrides({ typ: 'openid4vci-proof+jwt', alg: 'ES256', jwk: key.jwk }, overrides.header),
    withOverrides({ aud: audience, iat: now(), nonce }, overrides.payload),
  );
}

export const CLIENT_ID = 'https://wallet.example';
export const CODE_VERIFIER = 'GGc7MmiPX5kZMkQRwekwwLU_iPrtI2rGjLXL8JyQPXQ';
/** An authorization request without a credential. */
export const AUTHORIZATION_REQUEST = {
  response_type: 'code',
  client_id: CLIENT_ID,
  redirect_uri: 'https://wallet.example/cb?keep=this',
  code_challenge: '_IhBZY88woJ6oD5MlABM04Aap43i2LzsA14HBhVnfos',
  code_challenge_method: 'S256',
  state: 'state of the wallet',
};

export const PRE_AUTHORIZED = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';

/** A wallet that runs each step separately, so that each can be falsified. */
export class RawWallet {
  readonly service: Callable;
  readonly tenant: string;
  readonly issuer: string;
  readonly dpopKey = newKey();

  constructor(service: Callable, tenant: string) {
    this.service = service;
    this.tenant = tenant;
    this.issuer = `${service.address}/${tenant}`;
  }

  /** Fetches the offer behind a link. */
  async offer(uri: string): Promise<Record<string, unknown>> {
    const reference = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
    return (await this.service.call('GET', reference)).body as Record<string, unknown>;
  }

  async code(uri: string): Promise<string> {
    const { grants } = (await this.offer(uri)) as { grants: Record<string, Record<string, string>> };
    return grants[PRE_AUTHORIZED]?.['pre-authorized_code'] ?? '';
  }

  redeem(code: string, form: Record<string, string> = {}, headers?: Record<string, string>): Promise<Answer> {
    return this.service.call('POST', `/${this.tenant}/token`, {
      form: { grant_type: PRE_AUTHORIZED, 'pre-authorized_code': code, ...form },
      headers: headers ?? this.tokenProof(),
    });
  }

  /** The DPoP header of a token request. */
  tokenProof(): Record<string, string> {
    return { DPoP: dpopProof(this.dpopKey, `${this.issuer}/token`) };
  }

  async accessToken(uri: string, form: Record<string, string> = {}): Promise<string> {
    const answer = await this.redeem(await this.code(uri), form);
    if (answer.status !== 200) throw new Error(`token: ${answer.status} ${answer.text}`);
    return answer.body.access_token as string;
  }

  /** Pushes an authorization request for the offer behind a link; parameters can be overridden or, by '', omitted. */
  async push(uri: string, scope: string, form: Record<string, string> = {}): Promise<string> {
    const { grants } = (await this.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
    const { issuer_state } = grants.authorization_code;
    const answer = await this.par({ issuer_state, scope, ...form });
    if (answer.status !== 201) throw new Error(`par: ${answer.status} ${answer.text}`);
    return answer.body.request_uri as string;
  }

  par(form: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Answer> {
    const parameters = { ...AUTHORIZATION_REQUEST, ...form };
    const fields = Object.entries(parameters).filter(([, value]) => value !== '');
    return this.service.call('POST', `/${this.tenant}/par`, { form: Object.fromEntries(fields), headers });
  }

  /** Opens the approval page and submits a decision. @returns the redirect. */
  async decide(requestUri: string, decision = 'approve'): Promise<Answer> {
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: requestUri });
    const page = await this.service.call('GET', `/${this.tenant}/authorize?${query}`);
    const [, token = ''] = /name="decision_token" value="([^"]+)"/.exec(page.text) ?? [];
    return this.service.call('POST', `/${this.tenant}/authorize`, {
      form: { client_id: CLIENT_ID, request_uri: requestUri, decision, decision_token: token },
    });
  }

  /** Runs the flow from a pushed request to a code. */
  async authorize(requestUri: string): Promise<string> {
    const answer = await this.decide(requestUri);
    const location = answer.headers.get('location');
    const code = location === null ? null : new URL(location).searchParams.get('code');
    if (code === null) throw new Error(`authorize: ${answer.status} ${location} ${answer.text.slice(0, 500)}`);
    return code;
  }

  redeemCode(code: string, form: Record<string, string> = {}, headers?: Record<string, string>): Promise<Answer> {
    const parameters: Record<string, string> = {
      grant_type: 'authorization_code',
      code,
      client_id: CLIENT_ID,
      redirect_uri: AUTHORIZATION_REQUEST.redirect_uri,
      code_verifier: CODE_VERIFIER,
      ...form,
    };
    const fields = Object.entries(parameters).filter(([, value]) => value !== '');
    return this.service.call('POST', `/${this.tenant}/token`, { form: Object.fromEntries(fields), headers: headers ?? this.tokenProof() });
  }

  refresh(refreshToken: string, form: Record<string, string> = {}, headers?: Record<string, string>): Promise<Answer> {
    return this.service.call('POST', `/${this.tenant}/token`, {
      form: { grant_type: 'refresh_token', refresh_token: refreshToken, ...form },
      headers: headers ?? this.tokenProof(),
    });
  }

  async nonce(): Promise<string> {
    return (await this.service.call('POST', `/${this.tenant}/nonce`)).body.c_nonce as string;
  }

  /** Sends a credential request with a valid proof and overrides. */
  async request(
    token: string,
    configurationId: string,
    options: { body?: unknown; text?: string; headers?: Record<string, string>; key?: HolderKey; nonce?: string } = {},
  ): Promise<Answer> {
    const key = options.key ?? newKey();
    const body = options.body ?? {
      credential_configuration_id: configurationId,
      proofs: { jwt: [keyProof(key, this.issuer, options.nonce ?? (await this.nonce()))] },
    };
    return this.service.call('POST', `/${this.tenant}/credential`, {
      ...(options.text === undefined ? { json: body } : { text: options.text }),
      headers: {
        ...(options.text === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(options.headers ?? this.authorization(token)),
      },
    });
  }

  authorization(
    token: string,
    options: { key?: HolderKey; scheme?: string; path?: string; method?: string; url?: string } & Overrides = {},
  ): Record<string, string> {
    const url = options.url ?? `${this.issuer}/${options.path ?? 'credential'}`;
    const proof = dpopProof(options.key ?? this.dpopKey, url, { token, ...options });
    return { Authorization: `${options.scheme ?? 'DPoP'} ${token}`, DPoP: proof };
  }
}
