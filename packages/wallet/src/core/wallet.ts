import type { CallbackContext } from '@openid4vc/oauth2';
import { Openid4vpClient } from '@openid4vc/openid4vp';
import { type Answer, type Choice, firstChoice, presentationsFor, respond, submit } from './answers.ts';
import type { StoredCredential } from './cards.ts';
import { type Exchange, type Fetch, listening } from './exchanges.ts';
import { type Authorization, CLIENT_ID, Issuance, type Promised, type Received } from './issuance.ts';
import type { Misbehaviour } from './misbehaviours.ts';
import type { ReadOffer } from './offers.ts';
import { callbacksFor, Keys } from './openid.ts';
import { describeRequest, type ReadRequest, type Resolved } from './requests.ts';

export type WalletOptions = {
  readonly fetch?: Fetch;
  /** Hears of each call once it has ended. */
  readonly onExchange?: (exchange: Exchange) => void;
  /** Languages of the user, the most wanted first. */
  readonly languages?: readonly string[];
  /** For a wallet that keeps its cards in a file; else holder keys never leave WebCrypto. */
  readonly exportableKeys?: boolean;
  /** Cards that it already has. */
  readonly credentials?: readonly StoredCredential[];
};

export type PresentOptions = {
  /** Absent: the first card that answers each query. */
  readonly choice?: Choice;
  readonly misbehave?: Misbehaviour;
};

/** Of a replay both answers count: the first is the right one, and `repeated` is what the verifier says to the second. */
export type Presented = Answer & { readonly repeated?: Answer };

/**
 * A wallet for trying things out, in a browser's tab and in Node alike. It is made of other people's code and shares nothing
 * with the service, so what it accepts is evidence.
 */
export class SimulatedWallet {
  #credentials: StoredCredential[];
  readonly #languages: readonly string[];
  readonly #issuance: Issuance;
  readonly #vp: Openid4vpClient;
  readonly #read = new WeakMap<ReadRequest, Resolved>();

  constructor(options: WalletOptions = {}) {
    const { languages = ['en'], exportableKeys = false, credentials = [] } = options;
    const { fetch = globalThis.fetch.bind(globalThis), onExchange = () => {} } = options;
    const keys = new Keys(exportableKeys);
    const callbacks: CallbackContext = callbacksFor(keys, listening(fetch, onExchange));
    this.#languages = languages;
    this.#credentials = [...credentials];
    this.#issuance = new Issuance(callbacks, keys);
    this.#vp = new Openid4vpClient({ callbacks });
  }

  get credentials(): readonly StoredCredential[] {
    return this.#credentials;
  }

  /** What issuers promised for later. */
  get promised(): readonly Promised[] {
    return this.#issuance.promised;
  }

  /** Reads an offer and the metadata of its issuer. Nothing is accepted; who does not want it just leaves. */
  readOffer(uri: string): Promise<ReadOffer> {
    return this.#issuance.read(uri, this.#languages);
  }

  /** Collects what was offered for a pre-authorized code. @throws Error when the offer wants the user on a page first. */
  async accept(offer: ReadOffer, options: { readonly txCode?: string } = {}): Promise<Received> {
    if (offer.grant !== 'pre_authorized_code') throw new Error('this offer is accepted on a page of its issuer: authorize it');
    return this.#keep(await this.#issuance.accept(offer, options.txCode));
  }

  /** Begins the authorization code flow. @param redirectUri where the browser comes back to. */
  async authorize(offer: ReadOffer, redirectUri = `${CLIENT_ID}/callback`): Promise<Authorization> {
    const { url, complete } = await this.#issuance.authorize(offer, redirectUri);
    return { url, complete: async (returned) => this.#keep(await complete(returned)) };
  }

  /** Asks once for what was promised. @returns what came. */
  async fetchPromised(): Promise<readonly StoredCredential[]> {
    const credentials = await this.#issuance.fetchPromised();
    this.#keep({ credentials, promised: [] });
    return credentials;
  }

  /** Throws a card away and tells its issuer. */
  async discard(card: StoredCredential): Promise<void> {
    this.#credentials = this.#credentials.filter(({ id }) => id !== card.id);
    await this.#issuance.discard(card);
  }

  /** Fetches and verifies a request, and finds the cards that answer it. */
  async readRequest(uri: string): Promise<ReadRequest> {
    const { params } = this.#vp.parseOpenid4vpAuthorizationRequest({ authorizationRequest: uri });
    const resolved = await this.#vp.resolveOpenId4vpAuthorizationRequest({
      authorizationRequestPayload: params as never,
    });
    return this.#describe(resolved);
  }

  /** The request again, without a call: for a wallet that has other cards now. */
  matchAgain(request: ReadRequest): ReadRequest {
    const resolved = this.#read.get(request);
    if (resolved === undefined) throw new Error('this wallet has not read that request');
    return this.#describe(resolved);
  }

  /** @throws Error when no card answers what has to be answered, or the cards cannot misbehave so. */
  async present(request: ReadRequest, options: PresentOptions = {}): Promise<Presented> {
    const { misbehave } = options;
    if (misbehave === 'decline') return this.decline(request);
    const choice = options.choice ?? firstChoice(request);
    const vpToken = await presentationsFor(request, choice, misbehave);
    const response = await respond(this.#vp, request, vpToken);
    const answer = await submit(this.#vp, request, response);
    if (misbehave !== 'replay') return answer;
    return { ...answer, repeated: await submit(this.#vp, request, response) };
  }

  /** Tells the verifier that the user said no (OpenID4VP 1.0 section 8.5). */
  decline(request: ReadRequest): Promise<Answer> {
    const { state } = request.payload;
    const refusal = { error: 'access_denied', ...(typeof state === 'string' && { state }) };
    return submit(this.#vp, request, { authorizationResponsePayload: refusal as never });
  }

  #describe(resolved: Resolved): ReadRequest {
    const request = describeRequest(resolved, this.#credentials);
    this.#read.set(request, resolved);
    return request;
  }

  #keep(received: Received): Received {
    this.#credentials = [...this.#credentials, ...received.credentials];
    return received;
  }
}
