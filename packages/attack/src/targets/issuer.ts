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
  /** URL that the browser opened. */
  readonly url: string;
  /** Final redirect. */
  readonly sent: URL;
};

/** An issuer and its authorization server, with a client that performs each step separately. */
export class Issuer extends IssuerCalls {
  /** Uses a pre-authorized code, or an authorization code if no other offers were given. */
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

  /** The credential in the request, by identifier if the token response has identifiers (OpenID4VCI 1.0 section 8.2). */
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

  /** Sends a JSON body, or a text, encrypted if the issuer requires it; so is the response, which is decrypted. */
  async message(endpoint: string, grant: Grant, body: Json, sending: Sending = {}): Promise<Answer> {
    const url = this.endpoint(endpoint);
    const { credential_request_encryption: request, credential_response_encryption: response } = this.metadata;
    const isOwn = typeof body !== 'object' || 'credential_response_encryption' in body;
    const responseKey = response?.encryption_required === true && !isOwn ? newResponseKey(this.metadata) : undefined;
    const completeBody = responseKey === undefined ? body : { credential_response_encryption: responseKey.parameters, ...body };
    if (request?.encryption_required !== true && responseKey === undefined) {
      return this.resource(url, grant, completeBody, sending);
    }
    const jwe = await encryptBody(this.metadata, completeBody);
    const answer = await this.resource(url, grant, jwe, { ...sending, type: 'application/jwt' });
    return responseKey === undefined ? answer : decryptAnswer(answer, responseKey);
  }

  /** Body properties for issuers that always encrypt responses. */
  answerKey(): Json {
    const demanded = this.metadata.credential_response_encryption?.encryption_required === true;
    return demanded ? { credential_response_encryption: newResponseKey(this.metadata).parameters } : {};
  }

  async issue(grant: Grant, key: Key = newKey()): Promise<{ text: string; key: Key; response: Json }> {
    const answer = await this.credential(grant, await this.goodBody(grant, key));
    expectSuccess(answer, 'credential');
    const text = answer.json.credentials?.[0]?.credential;
    if (typeof text !== 'string') throw new NoControl(`no credential came: ${answer.status}`);
    return { text, key, response: answer.json };
  }

  /** The correct parameters of an authorization request (OpenID4VCI 1.0 section 5.1). */
  async authorization(
    more: Readonly<Record<string, string | undefined>> = {},
    requestedOffer?: Offer,
  ): Promise<Record<string, string | undefined>> {
    const offer = requestedOffer ?? (await this.source('code').next());
    const { scope } = this.configuration(offer.ids[0]);
    const detail = { type: 'openid_credential', credential_configuration_id: offer.ids[0], locations: [this.id] };
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

  /** URL that the browser opens for these parameters. */
  async authorizationUrl(fields: Record<string, string | undefined>): Promise<string> {
    const queryFields =
      this.server.pushed_authorization_request_endpoint === undefined
        ? fields
        : {
            client_id: fields['client_id'],
            request_uri: String(expectSuccess(await this.push(fields), 'pushed request').json.request_uri),
          };
    const pairs = Object.entries(queryFields).filter((pair): pair is [string, string] => pair[1] !== undefined);
    return `${this.endpoint('authorization_endpoint')}?${new URLSearchParams(pairs)}`;
  }

  /** The complete flow to a code, with the user's approval. */
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
