import { randomBytes } from 'node:crypto';
import type { Canary } from '../core/canary.ts';
import { expectSuccess, NoControl, Skip } from '../core/case.ts';
import type { Answer, Fields, HttpClient, Json } from '../core/http.ts';
import { type Bend, dpopProof, type Key, keyProof, newKey, sha256 } from '../core/jwt.ts';
import type { Options } from '../core/options.ts';
import { Browser } from './browser.ts';
import { decryptAnswer, encryptBody, newResponseKey } from './issuer-encryption.ts';
import { type Offer, type OfferKind, type OfferSource, PRE_AUTHORIZED } from './offers.ts';

export type Grant = {
  readonly accessToken: string;
  readonly type: string;
  /** Of the DPoP proofs. */
  readonly key: Key;
  readonly refreshToken: string | undefined;
  readonly offer: Offer;
  /** The whole token response. */
  readonly response: Json;
};

export type Sending = {
  /** Bends the DPoP proof; false sends none. */
  readonly dpop?: Bend | false;
  readonly key?: Key;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly scheme?: string;
  /** The whole proof, or proofs, instead of ours. */
  readonly proof?: (good: string) => string | readonly string[];
};

export const VERIFIER = 'GGc7MmiPX5kZMkQRwekwwLU_iPrtI2rGjLXL8JyQPXQ';

/** An issuer and its authorization server, as a wallet sees them that does each step by hand. */
export class Issuer {
  readonly http: HttpClient;
  readonly canary: Canary;
  readonly options: Options;
  readonly sources: readonly OfferSource[];
  readonly id: string;
  readonly metadata: Json;
  readonly server: Json;
  readonly browser: Browser;
  readonly #nonces = new Map<string, string>();

  constructor(parts: Pick<Issuer, 'http' | 'canary' | 'options' | 'sources' | 'id' | 'metadata' | 'server'>) {
    this.http = parts.http;
    this.canary = parts.canary;
    this.options = parts.options;
    this.sources = parts.sources;
    this.id = parts.id;
    this.metadata = parts.metadata;
    this.server = parts.server;
    this.browser = new Browser(parts.http, parts.options);
  }

  get boundTokens(): boolean {
    return Array.isArray(this.server.dpop_signing_alg_values_supported);
  }

  /** An endpoint of the issuer or of its server. @throws Skip when the metadata has none. */
  endpoint(name: string): string {
    const address = this.metadata[name] ?? this.server[name];
    if (typeof address !== 'string') throw new Skip(`the metadata has no ${name}`);
    return address;
  }

  configuration(id: string | undefined): Json {
    return this.metadata.credential_configurations_supported?.[id ?? ''] ?? {};
  }

  /** The first source of this kind; for SD-JWT VC, when there is one and nothing else is said. */
  source(kind: OfferKind, format?: string): OfferSource {
    const all = this.sources.filter((one) => one.kind === kind);
    const fits = (wanted: string) => all.find(({ ids }) => this.configuration(ids[0]).format === wanted);
    const found = format === undefined ? (fits('dc+sd-jwt') ?? all[0]) : fits(format);
    if (found === undefined)
      throw new Skip(`no offer of this kind was given (${format ?? ''} ${kind})`.replace('( ', '('));
    return found;
  }

  /** A request with a DPoP proof; once more when the server asks for its nonce (RFC 9449 section 8). */
  async bound(
    url: string,
    send: (proof: Record<string, string | readonly string[]>) => Promise<Answer>,
    sending: Sending & { token?: string; method?: string },
  ): Promise<Answer> {
    for (let tries = 0; ; tries++) {
      const answer = await send(this.#proof(url, sending));
      const nonce = answer.headers['dpop-nonce'];
      if (nonce !== undefined) this.#nonces.set(new URL(url).pathname, nonce);
      const asks =
        answer.json.error === 'use_dpop_nonce' ||
        answer.headers['www-authenticate']?.includes('use_dpop_nonce');
      if (!asks || nonce === undefined || tries > 0) return answer;
    }
  }

  #proof(
    url: string,
    sending: Sending & { token?: string; method?: string },
  ): Record<string, string | readonly string[]> {
    const { dpop, key, token, method = 'POST', proof } = sending;
    if (dpop === false || key === undefined || !this.boundTokens) return {};
    const nonce = this.#nonces.get(new URL(url).pathname);
    const claims = {
      ...(nonce === undefined ? {} : { nonce }),
      ...(token === undefined ? {} : { ath: sha256(token) }),
    };
    const good = dpopProof(key, method, url, claims, dpop);
    return { DPoP: proof === undefined ? good : proof(good) };
  }

  tokenRequest(fields: Fields, sending: Sending = {}): Promise<Answer> {
    const url = this.endpoint('token_endpoint');
    const all = { ...sending, key: sending.key ?? newKey() };
    return this.bound(url, (proof) => this.http.form(url, fields, { ...proof, ...sending.headers }), all);
  }

  /** The right form for an offer with a pre-authorized code. */
  redemption(offer: Offer, txCode?: string): Record<string, string> {
    return {
      grant_type: PRE_AUTHORIZED,
      'pre-authorized_code': offer.preCode,
      ...(offer.kind === 'tx' && txCode !== undefined ? { tx_code: txCode } : {}),
      ...this.clientFields(),
    };
  }

  clientFields(): Record<string, string> {
    const anonymous = this.server['pre-authorized_grant_anonymous_access_supported'] === true;
    return anonymous ? {} : { client_id: this.options['wallet-client-id'] };
  }

  async token(source: OfferSource = this.source('pre')): Promise<Grant> {
    const offer = await source.next();
    const key = newKey();
    return this.grant(await this.tokenRequest(this.redemption(offer, source.txCode), { key }), key, offer);
  }

  grant(answer: Answer, key: Key, offer: Offer): Grant {
    const {
      access_token: accessToken,
      token_type: type,
      refresh_token: refreshToken,
    } = expectSuccess(answer, 'token').json;
    if (typeof accessToken !== 'string') throw new NoControl('the token response has no access_token');
    return { accessToken, type: String(type ?? 'Bearer'), key, refreshToken, offer, response: answer.json };
  }

  async nonce(): Promise<string | undefined> {
    if (this.metadata.nonce_endpoint === undefined) return undefined;
    const answer = expectSuccess(
      await this.http.call(this.metadata.nonce_endpoint, { method: 'POST' }),
      'nonce',
    );
    return String(answer.json.c_nonce);
  }

  /** A call to a resource with the token of a grant; text is sent as it is. */
  resource(
    url: string,
    grant: Grant,
    body: unknown,
    sending: Sending & { method?: string; type?: string } = {},
  ): Promise<Answer> {
    const { accessToken: token, key, type } = grant;
    const content = typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body);
    const send = (proof: Record<string, string | readonly string[]>) =>
      this.http.call(url, {
        method: sending.method ?? 'POST',
        headers: {
          Authorization: `${sending.scheme ?? (this.boundTokens && type.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer')} ${token}`,
          'Content-Type': sending.type ?? 'application/json',
          ...proof,
          ...sending.headers,
        },
        ...(content === undefined ? {} : { body: content }),
      });
    return this.bound(url, send, { ...sending, key: sending.key ?? key, token });
  }

  /** What the request is for, by identifier when the token response has them (OpenID4VCI 1.0 section 8.2). */
  subject({ response, offer }: Grant): Record<string, string> {
    const details = (response.authorization_details ?? []) as Json[];
    const identifier = details[0]?.credential_identifiers?.[0];
    if (identifier !== undefined) return { credential_identifier: String(identifier) };
    return { credential_configuration_id: String(offer.ids[0]) };
  }

  async goodBody(grant: Grant, key: Key = newKey()): Promise<Json> {
    return { ...this.subject(grant), proofs: { jwt: [keyProof(key, this.id, await this.nonce())] } };
  }

  /** A credential request, encrypted where the issuer demands it. */
  async credential(grant: Grant, body: Json, sending: Sending = {}): Promise<Answer> {
    const url = this.endpoint('credential_endpoint');
    const back =
      this.metadata.credential_response_encryption?.encryption_required === true
        ? newResponseKey(this.metadata)
        : undefined;
    const whole = back === undefined ? body : { credential_response_encryption: back.parameters, ...body };
    if (this.metadata.credential_request_encryption?.encryption_required !== true && back === undefined) {
      return this.resource(url, grant, whole, sending);
    }
    const jwe = await encryptBody(this.metadata, whole);
    const answer = await this.resource(url, grant, jwe, { ...sending, type: 'application/jwt' });
    return back === undefined ? answer : decryptAnswer(answer, back);
  }

  /** The whole way to a credential. */
  async issue(grant: Grant, key: Key = newKey()): Promise<{ text: string; key: Key; response: Json }> {
    const answer = await this.credential(grant, await this.goodBody(grant, key));
    expectSuccess(answer, 'credential');
    const text = answer.json.credentials?.[0]?.credential;
    if (typeof text !== 'string') throw new NoControl(`no credential came: ${answer.status}`);
    return { text, key, response: answer.json };
  }

  /** The right parameters of an authorization request (OpenID4VCI 1.0 section 5.1). */
  async authorization(
    more: Readonly<Record<string, string | undefined>> = {},
  ): Promise<Record<string, string | undefined>> {
    const offer = await this.source('code').next();
    const { scope } = this.configuration(offer.ids[0]);
    const detail = {
      type: 'openid_credential',
      credential_configuration_id: offer.ids[0],
      locations: [this.id],
    };
    return {
      response_type: 'code',
      client_id: this.options['wallet-client-id'],
      redirect_uri: this.options['redirect-uri'],
      state: randomBytes(16).toString('base64url'),
      code_challenge: sha256(VERIFIER),
      code_challenge_method: 'S256',
      ...(scope === undefined ? { authorization_details: JSON.stringify([detail]) } : { scope }),
      ...(offer.issuerState === undefined ? {} : { issuer_state: offer.issuerState }),
      ...more,
    };
  }

  push(fields: Fields, sending: Sending = {}): Promise<Answer> {
    const url = this.endpoint('pushed_authorization_request_endpoint');
    return this.bound(url, (proof) => this.http.form(url, fields, { ...proof, ...sending.headers }), sending);
  }

  /** Where the browser goes for these parameters. */
  async authorizationUrl(fields: Record<string, string | undefined>): Promise<string> {
    const sent =
      this.server.pushed_authorization_request_endpoint === undefined
        ? fields
        : {
            client_id: fields['client_id'],
            request_uri: String(expectSuccess(await this.push(fields), 'pushed request').json.request_uri),
          };
    const pairs = Object.entries(sent).filter((pair): pair is [string, string] => pair[1] !== undefined);
    return `${this.endpoint('authorization_endpoint')}?${new URLSearchParams(pairs)}`;
  }

  /** The whole way to a code, with the user's approval. */
  async code(
    more: Readonly<Record<string, string | undefined>> = {},
  ): Promise<{ code: string; fields: Record<string, string | undefined>; url: string; sent: URL }> {
    const fields = await this.authorization(more);
    const url = await this.authorizationUrl(fields);
    const sent = new URL(await this.browser.approve(url));
    const code = sent.searchParams.get('code');
    if (code === null) throw new NoControl(`no code: ${sent.searchParams.get('error')}`);
    return { code, fields, url, sent };
  }

  codeRedemption(
    code: string,
    change: Record<string, string | undefined> = {},
  ): Record<string, string | undefined> {
    return {
      grant_type: 'authorization_code',
      code,
      client_id: this.options['wallet-client-id'],
      redirect_uri: this.options['redirect-uri'],
      code_verifier: VERIFIER,
      ...change,
    };
  }
}
