import type { CallbackContext } from '@openid4vc/oauth2';
import { Openid4vpClient } from '@openid4vc/openid4vp';
import { type Answer, type Choice, firstChoice, presentationsFor, respond, submit } from './answers.ts';
import type { StoredCredential } from './cards.ts';
import { type Exchange, type Fetch, observeFetch } from './exchanges.ts';
import { type Authorization, CLIENT_ID, type DeferredCredential, Issuance, type IssuanceResult } from './issuance.ts';
import type { Misbehaviour } from './misbehaviours.ts';
import type { ReadOffer } from './offers.ts';
import { callbacksFor, Keys } from './openid.ts';
import { describeRequest, type ReadRequest, type ResolvedRequest } from './requests.ts';

export type WalletOptions = {
  readonly fetch?: Fetch;
  /** Receives each completed exchange. */
  readonly onExchange?: (exchange: Exchange) => void;
  /** Languages of the user by preference. */
  readonly languages?: readonly string[];
  /** True for a wallet that stores its credentials in a file; otherwise holder keys never leave WebCrypto. */
  readonly exportableKeys?: boolean;
  /** Initial credentials. */
  readonly credentials?: readonly StoredCredential[];
};

export type PresentOptions = {
  /** Absent: the first matching credential for each query. */
  readonly choice?: Choice;
  readonly misbehave?: Misbehaviour;
};

/** Result of a presentation. For a replay it is the result of the first response, and `repeated` is that of the second. */
export type PresentationResult = Answer & { readonly repeated?: Answer };

/**
 * A wallet for tests, in browsers and in Node. It is built on external libraries and shares no code with the service, so its acceptance is
 * independent evidence.
 */
export class SimulatedWallet {
  #credentials: StoredCredential[];
  readonly #languages: readonly string[];
  readonly #issuance: Issuance;
  readonly #vp: Openid4vpClient;
  readonly #read = new WeakMap<ReadRequest, ResolvedRequest>();

  constructor(options: WalletOptions = {}) {
    const { languages = ['en'], exportableKeys = false, credentials = [] } = options;
    const { fetch = globalThis.fetch.bind(globalThis), onExchange = () => {} } = options;
    const keys = new Keys(exportableKeys);
    const callbacks: CallbackContext = callbacksFor(keys, observeFetch(fetch, onExchange));
    this.#languages = languages;
    this.#credentials = [...credentials];
    this.#issuance = new Issuance(callbacks, keys);
    this.#vp = new Openid4vpClient({ callbacks });
  }

  get credentials(): readonly StoredCredential[] {
    return this.#credentials;
  }

  /** Credentials that issuers deferred. */
  get promised(): readonly DeferredCredential[] {
    return this.#issuance.promised;
  }

  /** Reads an offer and the metadata of its issuer, without accepting anything. */
  readOffer(uri: string): Promise<ReadOffer> {
    return this.#issuance.read(uri, this.#languages);
  }

  /** Collects the credentials of a pre-authorized code. @throws Error for an offer of another flow. */
  async accept(offer: ReadOffer, options: { readonly txCode?: string } = {}): Promise<IssuanceResult> {
    if (offer.grant !== 'pre_authorized_code') throw new Error('this offer requires approval on a page of its issuer');
    return this.#keep(await this.#issuance.accept(offer, options.txCode));
  }

  /** Starts the authorization code flow. @param redirectUri of the browser. */
  async authorize(offer: ReadOffer, redirectUri = `${CLIENT_ID}/callback`): Promise<Authorization> {
    const { url, complete } = await this.#issuance.authorize(offer, redirectUri);
    return { url, complete: async (returned) => this.#keep(await complete(returned)) };
  }

  /** Polls deferred credentials once. @returns the issued ones. */
  async fetchPromised(): Promise<readonly StoredCredential[]> {
    const credentials = await this.#issuance.fetchPromised();
    this.#keep({ credentials, promised: [] });
    return credentials;
  }

  /** Deletes a credential and notifies its issuer. */
  async discard(card: StoredCredential): Promise<void> {
    this.#credentials = this.#credentials.filter(({ id }) => id !== card.id);
    await this.#issuance.discard(card);
  }

  /** Fetches and verifies a request, and finds matching credentials. */
  async readRequest(uri: string): Promise<ReadRequest> {
    const { params } = this.#vp.parseOpenid4vpAuthorizationRequest({ authorizationRequest: uri });
    const resolved = await this.#vp.resolveOpenId4vpAuthorizationRequest({ authorizationRequestPayload: params as never });
    return this.#describe(resolved);
  }

  /** Matches a request again without a call, after the wallet's credentials changed. */
  matchAgain(request: ReadRequest): ReadRequest {
    const resolved = this.#read.get(request);
    if (resolved === undefined) throw new Error('this wallet has not read that request');
    return this.#describe(resolved);
  }

  /** @throws Error without a matching credential for a required query, or for an unsupported misbehaviour. */
  async present(request: ReadRequest, options: PresentOptions = {}): Promise<PresentationResult> {
    const { misbehave } = options;
    if (misbehave === 'decline') return this.decline(request);
    const choice = options.choice ?? firstChoice(request);
    const vpToken = await presentationsFor(request, choice, misbehave);
    const response = await respond(this.#vp, request, vpToken);
    const answer = await submit(this.#vp, request, response);
    if (misbehave !== 'replay') return answer;
    return { ...answer, repeated: await submit(this.#vp, request, response) };
  }

  /** Reports to the verifier that the user declined (OpenID4VP 1.0 section 8.5). */
  decline(request: ReadRequest): Promise<Answer> {
    const { state } = request.payload;
    const refusal = { error: 'access_denied', ...(typeof state === 'string' && { state }) };
    return submit(this.#vp, request, { authorizationResponsePayload: refusal as never });
  }

  #describe(resolved: ResolvedRequest): ReadRequest {
    const request = describeRequest(resolved, this.#credentials);
    this.#read.set(request, resolved);
    return request;
  }

  #keep(received: IssuanceResult): IssuanceResult {
    this.#credentials = [...this.#credentials, ...received.credentials];
    return received;
  }
}
