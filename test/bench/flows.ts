import { expectStatus, HttpClient, json, text, WrongAnswer } from './http-client.ts';
import type { ScenarioName } from './scenarios.ts';
import { dpopProof, encrypt, KeyRing, keyProof, presentation, type WalletKey } from './wallet-crypto.ts';
import { ASKED, CLAIMS, DISCLOSURES, WALLETS, type World } from './world.ts';

type Held = {
  readonly credential: string;
  readonly key: WalletKey;
  readonly session: string;
  revoked: boolean;
};

/** What one wallet does in one scenario, again and again. */
export type Flow = (wallet: number) => Promise<void>;

const GRANT = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
const REVOKED = 1;
const VALID = 0;

/** The flows of the wallets and of the administrator that starts them. Every answer is checked. */
export class Flows {
  /** Credentials with a status, for presentations and revocations. */
  readonly held: Held[] = [];
  readonly #keys = new KeyRing();
  readonly #world: World;
  readonly #http: HttpClient;
  readonly #issuer: string;
  readonly #bearer: Record<string, string>;
  readonly #lastList = new Map<number, string>();
  #turn = 0;

  constructor(world: World) {
    this.#world = world;
    this.#http = new HttpClient(world.origin, WALLETS);
    this.#issuer = `${world.origin}/${world.tenantId}`;
    this.#bearer = { authorization: `Bearer ${world.token}` };
  }

  of(scenario: ScenarioName): Flow {
    const { plainId, statusId } = this.#world;
    const flows: Readonly<Record<ScenarioName, Flow>> = {
      issue: () => this.#issue(plainId),
      'issue-status': () => this.#issue(statusId),
      verify: () => this.#verify(),
      offer: async () => void (await this.#offer(plainId)),
      session: () => this.#readSession(),
      'status-list': async () => void (await this.#readList()),
      revoke: () => this.#revoke(),
      'revoke-read': (wallet) => this.#revokeAndRead(wallet),
    };
    return flows[scenario];
  }

  async #offer(configurationId: string) {
    const body = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [configurationId],
      credentialClaims: { [configurationId]: { type: 'inline', claims: CLAIMS } },
    };
    const offer = json('offer', await this.#http.postJson('/issuer/offer', body, this.#bearer), 201);
    return { uri: text('offer', offer, 'uri'), session: text('offer', offer, 'session') };
  }

  async #issue(configurationId: string): Promise<void> {
    const tenant = `/${this.#world.tenantId}`;
    const { uri, session } = await this.#offer(configurationId);
    const offerPath = pathOf(new URL(uri).searchParams.get('credential_offer_uri'));
    const fetched = json('fetch offer', await this.#http.get(offerPath), 200);
    const grant = (fetched['grants'] as Record<string, Record<string, unknown>> | undefined)?.[GRANT] ?? {};
    const code = text('fetch offer', grant, 'pre-authorized_code');

    const dpopKey = this.#keys.take();
    const form = { grant_type: GRANT, 'pre-authorized_code': code };
    const proof = { dpop: dpopProof(dpopKey, `${this.#issuer}/token`) };
    const token = json('token', await this.#http.postForm(`${tenant}/token`, form, proof), 200);
    if (token['token_type'] !== 'DPoP') throw new WrongAnswer('token', 'not bound to a key');
    const accessToken = text('token', token, 'access_token');
    const nonce = text('nonce', json('nonce', await this.#http.post(`${tenant}/nonce`), 200), 'c_nonce');

    const key = this.#keys.take();
    const body = {
      credential_configuration_id: configurationId,
      proofs: { jwt: [keyProof(key, this.#issuer, nonce)] },
    };
    const headers = {
      authorization: `DPoP ${accessToken}`,
      dpop: dpopProof(dpopKey, `${this.#issuer}/credential`, accessToken),
    };
    const answer = json('credential', await this.#http.postJson(`${tenant}/credential`, body, headers), 200);
    const [first] = (answer['credentials'] ?? []) as { credential?: unknown }[];
    const credential = String(first?.credential);
    if (credential.split('~').length !== DISCLOSURES + 2)
      throw new WrongAnswer('credential', 'not the disclosures that were asked for');
    if (configurationId === this.#world.statusId) {
      this.held.push({ credential, key, session, revoked: false });
    }
  }

  async #verify(): Promise<void> {
    const { credential, key } = this.#nextHeld((held) => !held.revoked);
    const body = { response_type: 'uri', requestId: this.#world.requestId };
    const offer = json('request', await this.#http.postJson('/verifier/offer', body, this.#bearer), 201);
    const uri = new URL(text('request', offer, 'uri'));
    const served = await this.#http.get(pathOf(uri.searchParams.get('request_uri')));
    expectStatus('request object', served, 200);
    const request = payloadOf(served.text);
    const metadata = request['client_metadata'] as { jwks?: { keys?: Record<string, string>[] } } | undefined;
    const { kid = '', x = '', y = '' } = metadata?.jwks?.keys?.[0] ?? {};
    const bound = presentation(credential, key, {
      names: ASKED,
      nonce: text('request object', request, 'nonce'),
      audience: text('request object', request, 'client_id'),
    });
    const plaintext = JSON.stringify({ vp_token: { pid: [bound] }, state: request['state'] });
    const response = await this.#http.postForm(pathOf(text('request object', request, 'response_uri')), {
      response: encrypt(plaintext, { kid, x, y }),
    });
    expectStatus('response', response, 200);
    const path = `/session/${text('request', offer, 'session')}`;
    const session = json('poll', await this.#http.get(path, this.#bearer), 200);
    if (session['status'] !== 'completed') throw new WrongAnswer('poll', `status ${session['status']}`);
    const credentials = JSON.stringify(session['credentials'] ?? null);
    if (!ASKED.every((name) => credentials.includes(`"${name}"`)))
      throw new WrongAnswer('poll', 'the session does not have the disclosed values');
  }

  async #readSession(): Promise<void> {
    const { session } = this.#nextHeld();
    const found = json('session', await this.#http.get(`/session/${session}`, this.#bearer), 200);
    if (found['id'] !== session) throw new WrongAnswer('session', 'another session');
  }

  async #readList(): Promise<string> {
    const [held] = this.held;
    const claims = payloadOf(held?.credential ?? '');
    const { uri } = (claims['status'] as { status_list?: { uri?: string } } | undefined)?.status_list ?? {};
    const list = await this.#http.get(pathOf(uri ?? null));
    expectStatus('status list', list, 200);
    if (list.text.split('.').length !== 3) throw new WrongAnswer('status list', 'not a JWT');
    return list.text;
  }

  /** Turns each credential over, so that each call changes something. */
  async #revoke(): Promise<void> {
    const held = this.#nextHeld();
    held.revoked = !held.revoked;
    const body = { sessionId: held.session, status: held.revoked ? REVOKED : VALID };
    expectStatus('revoke', await this.#http.postJson('/session/revoke', body, this.#bearer), 201);
  }

  async #revokeAndRead(wallet: number): Promise<void> {
    await this.#revoke();
    const list = await this.#readList();
    if (this.#lastList.get(wallet) === list) throw new WrongAnswer('status list', 'the change is not there');
    this.#lastList.set(wallet, list);
  }

  #nextHeld(fits: (held: Held) => boolean = () => true): Held {
    for (let tries = 0; tries < this.held.length; tries++) {
      const held = this.held[this.#turn++ % this.held.length];
      if (held !== undefined && fits(held)) return held;
    }
    throw new Error('there is no credential for this');
  }

  /** Begins with the first credential again. */
  rewind(): void {
    this.#turn = 0;
  }
}

function pathOf(address: string | null): string {
  if (address === null || address === '') throw new WrongAnswer('address', 'missing');
  const url = new URL(address);
  return url.pathname + url.search;
}

function payloadOf(jwt: string): Readonly<Record<string, unknown>> {
  const [, payload = ''] = jwt.split('~', 1).join('').split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Readonly<Record<string, unknown>>;
}
