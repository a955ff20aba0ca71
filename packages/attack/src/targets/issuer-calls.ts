import type { Canary } from '../core/canary.ts';
import { expectSuccess } from '../core/case.ts';
import type { Answer, Fields, HttpClient, Json } from '../core/http.ts';
import { type Alteration, dpopProof, type Key, newKey, sha256 } from '../core/jwt.ts';
import type { Options } from '../core/options.ts';
import { Skip } from '../core/skip.ts';
import { Browser } from './browser.ts';
import { type Offer, type OfferKind, type OfferSource, PRE_AUTHORIZED } from './offers.ts';

export type Grant = {
  readonly accessToken: string;
  readonly type: string;
  /** Key of the DPoP proofs. */
  readonly key: Key;
  readonly refreshToken: string | undefined;
  readonly offer: Offer;
  /** The whole token response. */
  readonly response: Json;
};

export type Sending = {
  /** Modifies the DPoP proof; false sends none. */
  readonly dpop?: Alteration | false;
  readonly key?: Key;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly scheme?: string;
  /** Replaces the complete proof, or proofs. */
  readonly proof?: (good: string) => string | readonly string[];
};

/** Calls to an issuer and its authorization server, with the required proofs. */
export class IssuerCalls {
  readonly http: HttpClient;
  readonly canary: Canary;
  readonly options: Options;
  readonly sources: readonly OfferSource[];
  readonly id: string;
  readonly metadata: Json;
  readonly server: Json;
  readonly browser: Browser;
  readonly #nonces = new Map<string, string>();

  constructor(parts: Pick<IssuerCalls, 'http' | 'canary' | 'options' | 'sources' | 'id' | 'metadata' | 'server'>) {
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

  /** An endpoint of the issuer or of its server. @throws Skip for a missing endpoint. */
  endpoint(name: string): string {
    const address = this.metadata[name] ?? this.server[name];
    if (typeof address !== 'string') throw new Skip(`the metadata has no ${name}`);
    return address;
  }

  configuration(id: string | undefined): Json {
    return this.metadata.credential_configurations_supported?.[id ?? ''] ?? {};
  }

  /** The first source of this kind; by default one for SD-JWT VC. */
  source(kind: OfferKind, format?: string): OfferSource {
    const candidates = this.sources.filter((source) => source.kind === kind);
    const fits = (requestedFormat: string) => candidates.find(({ ids }) => this.configuration(ids[0]).format === requestedFormat);
    const source = format === undefined ? (fits('dc+sd-jwt') ?? candidates[0]) : fits(format);
    if (source === undefined) throw new Skip(`no offer of this kind was given (${format ?? ''} ${kind})`.replace('( ', '('));
    return source;
  }

  /** A request with a DPoP proof; it is repeated when the server requires a nonce (RFC 9449 section 8). */
  async bound(
    url: string,
    send: (proof: Record<string, string | readonly string[]>) => Promise<Answer>,
    sending: Sending & { token?: string; method?: string },
  ): Promise<Answer> {
    for (let tries = 0; ; tries++) {
      const answer = await send(this.#proof(url, sending));
      const nonce = answer.headers['dpop-nonce'];
      if (nonce !== undefined) this.#nonces.set(new URL(url).pathname, nonce);
      const needsNonce = answer.json.error === 'use_dpop_nonce' || answer.headers['www-authenticate']?.includes('use_dpop_nonce');
      if (!needsNonce || nonce === undefined || tries > 0) return answer;
    }
  }

  /** True if the server at this address issues nonces for DPoP proofs. */
  givesNonces(url: string): boolean {
    return this.#nonces.has(new URL(url).pathname);
  }

  #proof(url: string, sending: Sending & { token?: string; method?: string }): Record<string, string | readonly string[]> {
    const { dpop, key, token, method = 'POST', proof } = sending;
    if (dpop === false || key === undefined || !this.boundTokens) return {};
    const nonce = this.#nonces.get(new URL(url).pathname);
    const claims = { ...(nonce === undefined ? {} : { nonce }), ...(token === undefined ? {} : { ath: sha256(token) }) };
    const good = dpopProof(key, method, url, claims, dpop);
    return { DPoP: proof === undefined ? good : proof(good) };
  }

  tokenRequest(fields: Fields, sending: Sending = {}): Promise<Answer> {
    const url = this.endpoint('token_endpoint');
    const candidates = { ...sending, key: sending.key ?? newKey() };
    return this.bound(url, (proof) => this.http.form(url, fields, { ...proof, ...sending.headers }), candidates);
  }

  /** The correct form for an offer with a pre-authorized code. */
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

  async nonce(): Promise<string | undefined> {
    if (this.metadata.nonce_endpoint === undefined) return undefined;
    const answer = expectSuccess(await this.http.call(this.metadata.nonce_endpoint, { method: 'POST' }), 'nonce');
    return String(answer.json.c_nonce);
  }

  /** A call to a resource with the token of a grant; text is sent unchanged. */
  resource(url: string, grant: Grant, body: unknown, sending: Sending & { method?: string; type?: string } = {}): Promise<Answer> {
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
}
