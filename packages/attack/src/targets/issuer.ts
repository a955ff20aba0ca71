import { randomBytes } from 'node:crypto';
import { expectSuccess, NoControl } from '../core/case.ts';
import type { Answer, Fields, Json } from '../core/http.ts';
import { type Key, keyProof, newKey, sha256 } from '../core/jwt.ts';
import { type Grant, IssuerCalls, type Sending } from './issuer-calls.ts';

import { decryptAnswer, encryptBody, newResponseKey } from './issuer-encryption.ts';
import type { Offer, OfferSource } from './offers.ts';

export type { Grant, Sending } from './issuer-calls.ts';

export const VERIFIER = 'GGc7MmiPX5kZMkQRwekwwLU_iPrtI2rGjLXL8JyQPXQ';

export type Authorized = {
  readonly code: string;
  readonly offer: Offer;
  readonly fields: Record<string, string | undefined>;
  /** Where the browser went. */
  readonly url: string;
  /** Where it was sent in the end. */
  readonly sent: URL;
};

/** An issuer and its authorization server, as a wallet sees them that does each step by hand. */
export class Issuer extends IssuerCalls {
  /** By a pre-authorized code, or by an authorization code where no other offers were given. */
  async token(source: OfferSource = this.#anySource()): Promise<Grant> {
    const key = newKey();
    if (source.kind === 'code') {
      const { code, offer } = await this.code();
      return this.grant(await this.tokenRequest(this.codeRedemption(code), { key }), key, offer);
    }
    const offer = await source.next();
    return this.grant(await this.tokenRequest(this.redemption(offer, source.txCode), { key }), key, offer);
  }

  #anySource(): OfferSource {
    const hasPre = this.sources.some(({ kind }) => kind === 'pre');
    return this.source(hasPre || !this.sources.some(({ kind }) => kind === 'code') ? 'pre' : 'code');
  }

  grant(answer: Answer, key: Key, offer: Offer): Grant {
    const { access_token: accessToken, token_type: type, refresh_token: refreshToken } = expectSuccess(answer, 'token').json;
    if (typeof accessToken !== 'string') throw new NoControl('the token response has no access_token');
    return { accessToken, type: String(type ?? 'Bearer'), key, refreshToken, offer, response: answer.json };
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

  credential(grant: Grant, body: Json, sending: Sending = {}): Promise<Answer> {
    return this.message('credential_endpoint', grant, body, sending);
  }

  /** A body in JSON, or a text in its place, encrypted where the issuer demands it; so is the answer, which is read. */
  async message(endpoint: string, grant: Grant, body: Json, sending: Sending = {}): Promise<Answer> {
    const url = this.endpoint(endpoint);
    const { credential_request_encryption: request, credential_response_encryption: response } = this.metadata;
    const isOwn = typeof body !== 'object' || 'credential_response_encryption' in body;
    const back = response?.encryption_required === true && !isOwn ? newResponseKey(this.metadata) : undefined;
    const whole = back === undefined ? body : { credential_response_encryption: back.parameters, ...body };
    if (request?.encryption_required !== true && back === undefined) {
      return this.resource(url, grant, whole, sending);
    }
    const jwe = await encryptBody(this.metadata, whole);
    const answer = await this.resource(url, grant, jwe, { ...sending, type: 'application/jwt' });
    return back === undefined ? answer : decryptAnswer(answer, back);
  }

  /** What a body has to have where answers are encrypted always. */
  answerKey(): Json {
    const demanded = this.metadata.credential_response_encryption?.encryption_required === true;
    return demanded ? { credential_response_encryption: newResponseKey(this.metadata).parameters } : {};
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
  async authorization(more: Readonly<Record<string, string | undefined>> = {}, given?: Offer): Promise<Record<string, string | undefined>> {
    const offer = given ?? (await this.source('code').next());
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
  async code(more: Readonly<Record<string, string | undefined>> = {}): Promise<Authorized> {
    const offer = await this.source('code').next();
    const fields = await this.authorization(more, offer);
    const url = await this.authorizationUrl(fields);
    const sent = new URL(await this.browser.approve(url));
    const code = sent.searchParams.get('code');
    if (code === null) throw new NoControl(`no code: ${sent.searchParams.get('error')}`);
    return { code, offer, fields, url, sent };
  }

  codeRedemption(code: string, change: Record<string, string | undefined> = {}): Record<string, string | undefined> {
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
