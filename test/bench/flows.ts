import { decodePayload, expectStatus, HttpClient, json, pathFromLocation, text, WrongAnswer } from './http-client.ts';
import type { ScenarioName } from './scenarios.ts';
import {
  Attester,
  type Bound,
  bind,
  disclosing,
  dpopProof,
  encrypt,
  type KeyRing,
  keyProof,
  presentMdoc,
  selectShown,
  type WalletKey,
} from './wallet-crypto.ts';
import { ASKED, type Asking, BATCH, CLAIMS, DISCLOSURES, DOC_TYPE, ELEMENTS, FORMATS, type Format, type World } from './world.ts';

/** A credential with a status. It is never revoked, so that every scenario can present it. */
export type HeldCredential = {
  readonly credential: string;
  readonly session: string;
  /** Presents what verifiers ask for, bound to a request. */
  readonly present: (request: Bound) => string;
};

/** The credentials of one format, used round-robin. */
export class HeldCredentials {
  readonly all: HeldCredential[] = [];
  #turn = 0;

  next(): HeldCredential {
    const credential = this.all[this.#turn++ % this.all.length];
    if (credential === undefined) throw new Error('there is no credential for this');
    return credential;
  }

  /** Begins with the first credential again. */
  rewind(): void {
    this.#turn = 0;
  }
}

/** Shared parts of the flows of one tenant. */
export type FlowParts = {
  readonly http: HttpClient;
  readonly bearer: Readonly<Record<string, string>>;
  readonly held: Readonly<Record<Format, HeldCredentials>>;
};

/** The steps of verifier and wallet for one presentation request, from its creation to its result. */
export class Presentations {
  readonly #parts: FlowParts;

  constructor(parts: FlowParts) {
    this.#parts = parts;
  }

  /** Answers each query of the configuration with a credential of its own. */
  async verify({ requestId, queries }: Asking): Promise<void> {
    const { http, held: all } = this.#parts;
    const bearer = { ...this.#parts.bearer };
    const body = { response_type: 'uri', requestId };
    const offer = json('request', await http.postJson('/verifier/offer', body, bearer), 201);
    const uri = new URL(text('request', offer, 'uri'));
    const served = await http.get(pathFromLocation(uri.searchParams.get('request_uri')));
    expectStatus('request object', served, 200);
    const request = decodePayload(served.text);
    const bound = boundTo(request);
    const vpToken = Object.fromEntries(
      queries.map(({ id, format }) => {
        const credential = all[format].next();
        return [id, [credential.present(bound)]];
      }),
    );
    const plaintext = JSON.stringify({ vp_token: vpToken, state: request['state'] });
    const response = { response: encrypt(plaintext, bound.encryptionKey) };
    expectStatus('response', await http.postForm(pathFromLocation(bound.responseUri), response), 200);
    const session = text('request', offer, 'session');
    checkResult(json('poll', await http.get(`/session/${session}`, bearer), 200), queries);
  }
}

function boundTo(request: Readonly<Record<string, unknown>>): Bound {
  const metadata = request['client_metadata'] as { jwks?: { keys?: Record<string, string>[] } } | undefined;
  const { kid = '', x = '', y = '' } = metadata?.jwks?.keys?.[0] ?? {};
  return {
    nonce: text('request object', request, 'nonce'),
    clientId: text('request object', request, 'client_id'),
    responseUri: text('request object', request, 'response_uri'),
    encryptionKey: { kid, x, y },
  };
}

function checkResult(session: Readonly<Record<string, unknown>>, queries: Asking['queries']): void {
  if (session['status'] !== 'completed') throw new WrongAnswer('poll', `status ${session['status']}`);
  const credentials = (session['credentials'] ?? []) as readonly { id?: unknown; values?: unknown }[];
  const isPresent = queries.every(({ id, format }) => {
    const values = JSON.stringify(credentials.find((credential) => credential.id === id)?.values ?? null);
    return ASKED[format].every((name) => values.includes(`"${name}"`));
  });
  if (!isPresent) throw new WrongAnswer('poll', 'the session does not have the disclosed values');
}

/** A session that issued a credential, and the list with its status. */
export type Revocable = { readonly session: string; readonly listUri: string };

const REVOKED = 1;

/** Status changes by the issuer, and requests for the status list. */
export class StatusFlows {
  readonly #parts: FlowParts;
  /** Revoked is final, so each revocation takes a credential of its own. */
  readonly #revocable: Revocable[] = [];
  readonly #lastList = new Map<number, string>();

  constructor(parts: FlowParts) {
    this.#parts = parts;
  }

  addRevocable(all: readonly Revocable[]): void {
    for (const credential of all) this.#revocable.push(credential);
  }

  /** The status list of the first credential. */
  async readList(): Promise<void> {
    const [credential] = this.#parts.held['dc+sd-jwt'].all;
    const claims = decodePayload(credential?.credential ?? '');
    const { uri } = (claims['status'] as { status_list?: { uri?: string } } | undefined)?.status_list ?? {};
    await this.#readList(uri ?? null);
  }

  /** @returns what was revoked. */
  async revoke(): Promise<Revocable> {
    const { http, bearer } = this.#parts;
    const revocable = this.#revocable.pop();
    if (revocable === undefined) throw new Error('too few revocable credentials were created');
    const body = { sessionId: revocable.session, status: REVOKED };
    expectStatus('revoke', await http.postJson('/session/revoke', body, { ...bearer }), 201);
    return revocable;
  }

  async revokeAndRead(wallet: number): Promise<void> {
    const list = await this.#readList((await this.revoke()).listUri);
    if (this.#lastList.get(wallet) === list) throw new WrongAnswer('status list', 'the change is not there');
    this.#lastList.set(wallet, list);
  }

  async #readList(uri: string | null): Promise<string> {
    const list = await this.#parts.http.get(pathFromLocation(uri));
    expectStatus('status list', list, 200);
    if (list.text.split('.').length !== 3) throw new WrongAnswer('status list', 'not a JWT');
    return list.text;
  }
}

/** An access token and the key that it is bound to. */
type BoundToken = { readonly accessToken: string; readonly dpopKey: WalletKey };

/** Prepares the presentation of a received credential. */
const PRESENTER: Readonly<Record<Format, (credential: string, key: WalletKey) => HeldCredential['present']>> = {
  'dc+sd-jwt': (credential, key) => {
    const disclosed = disclosing(credential, ASKED['dc+sd-jwt']);
    return (request) => bind(disclosed, key, request);
  },
  mso_mdoc: (credential, key) => {
    const shownMdoc = selectShown(credential, DOC_TYPE, ASKED.mso_mdoc);
    return (request) => presentMdoc(shownMdoc, key, request);
  },
};

/** Differences of an issuance from the default. */
type Variant = {
  readonly claims?: object;
  /** Keys, and so credentials, of one request. */
  readonly count?: number;
  readonly token?: (uri: string) => Promise<BoundToken>;
};

const REDIRECT_URI = 'https://wallet.example/callback';
/** A verifier and its challenge (RFC 7636 section 4.2); the bench has no secrets to keep. */
const CODE_VERIFIER = 'GGc7MmiPX5kZMkQRwekwwLU_iPrtI2rGjLXL8JyQPXQ';
const CODE_CHALLENGE = '_IhBZY88woJ6oD5MlABM04Aap43i2LzsA14HBhVnfos';

/** The repeated steps of one wallet in a scenario. */
export type Flow = (wallet: number) => Promise<void>;

const GRANT = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';

/** The flows of the wallets and of the administrator that starts them. Every answer is checked. */
export class Flows {
  /** Credentials with a status, for presentations and revocations. */
  readonly held: Readonly<Record<Format, HeldCredentials>> = { 'dc+sd-jwt': new HeldCredentials(), mso_mdoc: new HeldCredentials() };
  readonly #keys: KeyRing;
  readonly #world: World;
  readonly #http: HttpClient;
  readonly #issuer: string;
  readonly #attester: Attester;
  readonly #bearer: Record<string, string>;
  readonly #presentations: Presentations;
  readonly statuses: StatusFlows;

  constructor(world: World, keys: KeyRing, http = new HttpClient(world.origin, world.wallets)) {
    this.#keys = keys;
    this.#world = world;
    this.#http = http;
    this.#issuer = `${world.origin}/${world.tenantId}`;
    this.#attester = new Attester(world.provider);
    this.#bearer = { authorization: `Bearer ${world.token}` };
    const parts = { http: this.#http, bearer: this.#bearer, held: this.held };
    this.#presentations = new Presentations(parts);
    this.statuses = new StatusFlows(parts);
  }

  get wallets(): number {
    return this.#world.wallets;
  }

  flow(scenario: ScenarioName): Flow {
    const { plainId, statusIds, mdocId, asking } = this.#world;
    const flows: Readonly<Record<ScenarioName, Flow>> = {
      issue: () => this.#issue(plainId),
      'issue-status': () => this.#issue(statusIds['dc+sd-jwt']),
      'issue-mdoc': () => this.#issue(mdocId, { claims: ELEMENTS }),
      batch: () => this.#issue(statusIds['dc+sd-jwt'], { count: BATCH }),
      code: () => this.#issue(plainId, { token: (uri) => this.#tokenByCode(uri, plainId) }),
      verify: () => this.#presentations.verify(asking.verify),
      'verify-mdoc': () => this.#presentations.verify(asking['verify-mdoc']),
      'verify-20': () => this.#presentations.verify(asking['verify-20']),
      offer: async () => void (await this.#offer(plainId)),
      session: () => this.#readSession(),
      sessions: () => this.#listSessions(),
      'status-list': () => this.statuses.readList(),
      revoke: async () => void (await this.statuses.revoke()),
      'revoke-read': (wallet) => this.statuses.revokeAndRead(wallet),
    };
    return flows[scenario];
  }

  /** Issues one of the credentials to hold. */
  async stockUp(format: Format): Promise<void> {
    const id = this.#world.statusIds[format];
    await this.#issue(id, format === 'mso_mdoc' ? { claims: ELEMENTS } : {});
  }

  async #offer(configurationId: string, claims: object = CLAIMS, flow = 'pre_authorized_code') {
    const body = {
      response_type: 'uri',
      flow,
      credentialConfigurationIds: [configurationId],
      credentialClaims: { [configurationId]: { type: 'inline', claims } },
    };
    const offer = json('offer', await this.#http.postJson('/issuer/offer', body, this.#bearer), 201);
    return { uri: text('offer', offer, 'uri'), session: text('offer', offer, 'session') };
  }

  async #issue(configurationId: string, variant: Variant = {}): Promise<void> {
    const { claims, count = 1, token = (uri: string) => this.#tokenByOffer(uri) } = variant;
    const tenant = `/${this.#world.tenantId}`;
    const flow = variant.token === undefined ? 'pre_authorized_code' : 'authorization_code';
    const { uri, session } = await this.#offer(configurationId, claims, flow);
    const { accessToken, dpopKey } = await token(uri);
    const nonce = text('nonce', json('nonce', await this.#http.post(`${tenant}/nonce`), 200), 'c_nonce');

    const keys = Array.from({ length: count }, () => this.#keys.takeKey());
    const body = { credential_configuration_id: configurationId, proofs: { jwt: keys.map((key) => keyProof(key, this.#issuer, nonce)) } };
    const headers = { authorization: `DPoP ${accessToken}`, dpop: dpopProof(dpopKey, `${this.#issuer}/credential`, accessToken) };
    const answer = json('credential', await this.#http.postJson(`${tenant}/credential`, body, headers), 200);
    const credentials = (answer['credentials'] ?? []) as { credential?: unknown }[];
    if (credentials.length !== count) throw new WrongAnswer('credential', `${credentials.length} of them`);
    const credential = String(credentials[0]?.credential);
    if (claims !== ELEMENTS && credential.split('~').length !== DISCLOSURES + 2)
      throw new WrongAnswer('credential', 'not the disclosures that were asked for');
    const [key] = keys;
    const format = FORMATS.find((credential) => this.#world.statusIds[credential] === configurationId);
    if (format !== undefined && count === 1 && key !== undefined) {
      const present = PRESENTER[format](credential, key);
      this.held[format].all.push({ credential, session, present });
    }
  }

  async #fetchGrants(uri: string): Promise<Record<string, Record<string, unknown>>> {
    const offerPath = pathFromLocation(new URL(uri).searchParams.get('credential_offer_uri'));
    const fetchedOffer = json('fetch offer', await this.#http.get(offerPath), 200);
    return (fetchedOffer['grants'] ?? {}) as Record<string, Record<string, unknown>>;
  }

  async #tokenByOffer(uri: string): Promise<BoundToken> {
    const grant = (await this.#fetchGrants(uri))[GRANT] ?? {};
    const code = text('fetch offer', grant, 'pre-authorized_code');
    return this.#redeem({ grant_type: GRANT, 'pre-authorized_code': code }, this.#keys.takeKey());
  }

  /** Over the page of the built-in server, as an attested wallet. */
  async #tokenByCode(uri: string, scope: string): Promise<BoundToken> {
    const tenant = `/${this.#world.tenantId}`;
    const grant = (await this.#fetchGrants(uri))['authorization_code'] ?? {};
    const [dpopKey, instance] = [this.#keys.takeKey(), this.#keys.takeKey()];
    const client_id = this.#attester.clientId;
    const attestation = this.#attester.attest(instance);
    const challenge = text('challenge', json('challenge', await this.#http.post(`${tenant}/challenge`), 200), 'attestation_challenge');
    const attested = () => ({
      'oauth-client-attestation': attestation,
      'oauth-client-attestation-pop': this.#attester.prove(instance, this.#issuer, challenge),
    });
    const request = {
      response_type: 'code',
      client_id,
      redirect_uri: REDIRECT_URI,
      code_challenge: CODE_CHALLENGE,
      code_challenge_method: 'S256',
      scope,
      issuer_state: text('fetch offer', grant, 'issuer_state'),
    };
    const proof = { dpop: dpopProof(dpopKey, `${this.#issuer}/par`), ...attested() };
    const pushed = json('par', await this.#http.postForm(`${tenant}/par`, request, proof), 201);
    const request_uri = text('par', pushed, 'request_uri');
    const query = new URLSearchParams({ client_id, request_uri });
    const page = await this.#http.get(`${tenant}/authorize?${query}`);
    expectStatus('page', page, 200);
    const [, decision_token = ''] = /name="decision_token" value="([^"]+)"/.exec(page.text) ?? [];
    const decision = { client_id, request_uri, decision_token, decision: 'approve' };
    const decided = await this.#http.postForm(`${tenant}/authorize`, decision);
    expectStatus('decision', decided, 303);
    const code = new URL(decided.location ?? '').searchParams.get('code') ?? '';
    const form = { grant_type: 'authorization_code', code, client_id, redirect_uri: REDIRECT_URI, code_verifier: CODE_VERIFIER };
    return this.#redeem(form, dpopKey, attested());
  }

  async #redeem(
    form: Readonly<Record<string, string>>,
    dpopKey: WalletKey,
    extraParameters: Readonly<Record<string, string>> = {},
  ): Promise<BoundToken> {
    const proof = { dpop: dpopProof(dpopKey, `${this.#issuer}/token`), ...extraParameters };
    const path = `/${this.#world.tenantId}/token`;
    const token = json('token', await this.#http.postForm(path, form, proof), 200);
    if (token['token_type'] !== 'DPoP') throw new WrongAnswer('token', 'not bound to a key');
    return { accessToken: text('token', token, 'access_token'), dpopKey };
  }

  async #readSession(): Promise<void> {
    const { session } = this.held['dc+sd-jwt'].next();
    const foundSession = json('session', await this.#http.get(`/session/${session}`, this.#bearer), 200);
    if (foundSession['id'] !== session) throw new WrongAnswer('session', 'another session');
  }

  async #listSessions(): Promise<void> {
    const answer = await this.#http.get('/session', this.#bearer);
    expectStatus('sessions', answer, 200);
    if (!answer.text.startsWith('[{')) throw new WrongAnswer('sessions', 'an empty page');
  }

  /** Begins with the first credentials again. */
  rewind(): void {
    for (const held of Object.values(this.held)) held.rewind();
  }
}
