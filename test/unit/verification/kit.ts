import { createSecretKey, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';
import { CompactEncrypt, importJWK } from 'jose';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeEncryption } from '../../../adapters/crypto/encryption.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { X509Authority } from '../../../adapters/crypto/x509-authority.ts';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { KmsRegistry } from '../../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import type { TenantCaller } from '../../../application/caller.ts';
import { OcspResponders } from '../../../application/certificate-status/ocsp-responders.ts';
import { RevocationLists } from '../../../application/certificate-status/revocation-lists.ts';
import { RevocationVerifier } from '../../../application/certificate-status/verify-revocation.ts';
import { createKeyChain } from '../../../application/keys/create-key-chain.ts';
import { AuthorityPublisher } from '../../../application/keys/publish-authorities.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { Log, type LogFields } from '../../../application/ports/log.ts';
import type { Registrar } from '../../../application/ports/registrar.ts';
import { Remote, RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { type WebhookError, Webhooks } from '../../../application/ports/webhooks.ts';
import { IssuerRegistration } from '../../../application/registrar/issuer-registration.ts';
import { RegistrationCertificateVerifier } from '../../../application/registrar/registration-certificate-verifier.ts';
import { RegistrationCertificates } from '../../../application/registrar/registration-certificates.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import { RemoteStatusLists } from '../../../application/status-lists/remote-status-lists.ts';
import { StatusVerifier } from '../../../application/status-lists/verify-status.ts';
import { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import { ListSigners } from '../../../application/trust-lists/list-signers.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import { TypeMetadata } from '../../../application/type-metadata/type-metadata.ts';
import { CreatePresentationRequest } from '../../../application/verification/create-presentation-request.ts';
import { IssuerTrusts } from '../../../application/verification/issuer-trust.ts';
import { ReplacePresentationConfiguration } from '../../../application/verification/presentation-configurations.ts';
import { PresentationVerifier } from '../../../application/verification/presentation-verifier.ts';
import { ReceiveDcApiResponse, ReceiveResponse, RejectedResponses } from '../../../application/verification/receive-response.ts';
import { ResponseIntake } from '../../../application/verification/response-intake.ts';
import { ResultDelivery } from '../../../application/verification/result-delivery.ts';
import { OpenRequests, ServeRequestObject } from '../../../application/verification/serve-request-object.ts';
import { SessionOutcomes } from '../../../application/verification/session-outcomes.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { buildSigningInput, joinCompact, parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { prepareSdJwt, sealSdJwt } from '../../../domain/formats/sd-jwt/issue.ts';
import { type KeyChain, type KeyUsage, signingChain } from '../../../domain/keys/key-chain.ts';
import { signingKey } from '../../../domain/keys/signing-key.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { type PublicJwk, parsePublicJwk } from '../../../domain/shared/jwk.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import type { PostedVerification } from '../../../domain/verification/verification-request.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { inlineTrustLists } from '../../support/fakes.ts';
import { MemoryStore, TEST_CIPHER } from '../../support/memory-store.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';

export const PUBLIC_URL = 'https://vidimus.example';
export const ACME = 'acme' as TenantId;
export const VCT = 'urn:card:1';

export class SetClock extends Clock {
  time = new Date('2026-06-01T12:00:00Z').getTime();
  override now(): Date {
    return new Date(this.time);
  }
}
class FakeLog extends Log {
  readonly errors: { message: string; fields: LogFields | undefined; cause: unknown }[] = [];
  override info(): void {}
  override warn(): void {}
  override error(message: string, fields?: LogFields, cause?: unknown): void {
    this.errors.push({ message, fields, cause });
  }
}
export class FakeSettings extends ServiceSettings {
  override readonly publicUrl = PUBLIC_URL;
  override readonly release = { version: '0', commit: null };
  override readonly sessionTtlSeconds = 86_400;
  override readonly statusDefaults = { capacity: 1000, bits: 1, ttl: 3600 } as const;
  override readonly rootClient = { clientId: 'root', secret: 'root' };
  override readonly nonceKeys = [createSecretKey(Buffer.alloc(32, 1))];
  override readonly refreshTokenKeys = [createSecretKey(Buffer.alloc(32, 2))];
  override readonly encryptionKeys = [createSecretKey(Buffer.alloc(32, 3))];
  override readonly subjectKey = createSecretKey(Buffer.alloc(32));
  override readonly txCodeKeys = [createSecretKey(Buffer.alloc(32))];
}
export class FakeRemote extends Remote {
  readonly calls: { url: string; accept: string | undefined }[] = [];
  /** Addresses that were requested with redirects allowed. */
  readonly urlsWithRedirects: string[] = [];
  answer: (url: string) => RemoteResponse | RemoteError = () => new RemoteError('unreachable', 'unreachable');
  override refuses(): boolean {
    return false;
  }
  override async request(url: string, options: Parameters<Remote['request']>[1]): Promise<RemoteResponse> {
    this.calls.push({ url, accept: options.headers?.['accept'] });
    if (options.followsRedirects === true) this.urlsWithRedirects.push(url);
    await new Promise((resolve) => setImmediate(resolve));
    const answer = this.answer(url);
    if (answer instanceof Error) throw answer;
    return answer;
  }
}
export type WebhookCall = {
  readonly url: string;
  readonly body: JsonObject & { readonly credentials: readonly JsonObject[] };
  readonly deliveryId: string;
};
export class FakeWebhooks extends Webhooks {
  readonly calls: WebhookCall[] = [];
  answer: Json | WebhookError | undefined;
  beforeAnswer: () => Promise<void> = async () => {};
  override refuses(): boolean {
    return false;
  }
  override async post({ url }: { readonly url: string }, body: Json, { deliveryId }: { readonly deliveryId: string }) {
    this.calls.push({ url, body: body as WebhookCall['body'], deliveryId });
    await this.beforeAnswer();
    if (this.answer instanceof Error) throw this.answer;
    return { status: 200, body: this.answer };
  }
}
export class FakeOwnLists {
  readonly entries = new Map<string, number>();
  /** Certificate chains by tenant and list. */
  readonly signers = new Map<string, readonly string[]>();
  async statusAt(tenantId: TenantId, listId: string, index: number): Promise<number | undefined> {
    return this.entries.get(`${tenantId}/${listId}/${index}`);
  }
  async signerOf(tenantId: TenantId, listId: string): Promise<readonly string[] | undefined> {
    return this.signers.get(`${tenantId}/${listId}`);
  }
  async entriesOf(): Promise<undefined> {
    return undefined;
  }
}

export type Holder = { readonly jwk: PublicJwk; readonly privateKey: KeyObject };
export function makeHolder(): Holder {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = parsePublicJwk(publicKey.export({ format: 'jwk' }));
  if (jwk === undefined) throw new Error('unreadable');
  return { jwk, privateKey };
}

/** A cache, since creating certificates takes longer than most tests. */
const KEY_CHAINS = new Map<string, Promise<KeyChain>>();

/** All use cases of verification with fakes of the outside, and one tenant. */
export class World {
  readonly clock = new SetClock();
  readonly random = new NodeRandom();
  readonly store = new MemoryStore();
  readonly remote = new FakeRemote();
  readonly webhooks = new FakeWebhooks();
  readonly localStatusLists = new FakeOwnLists();
  readonly eventBus = new InProcessEventBus();
  readonly signatures = new NodeSignatures();
  readonly certificates = new NodeCertificates();
  readonly trustListReader = inlineTrustLists();
  readonly encryption = new NodeEncryption();
  readonly settings = new FakeSettings();
  readonly log = new FakeLog();
  readonly tenantConfigurations = new TenantConfigurations(this);
  readonly fetchedSessions: FetchedSessions = new FetchedSessions(this);
  readonly holder = makeHolder();
  readonly kms: KmsRegistry;
  readonly remoteStatusLists: RemoteStatusLists;
  readonly statusVerifier: StatusVerifier;
  readonly revocationLists: RevocationLists;
  readonly ocspResponders: OcspResponders;
  readonly revocationVerifier: RevocationVerifier;
  readonly registrationCertificates: RegistrationCertificates;
  readonly issuerRegistration: IssuerRegistration;
  /** Not called in these tests. */
  readonly registrar = {} as Registrar;
  readonly listSigners: ListSigners;
  readonly trustLists: TrustLists;
  readonly typeMetadata: TypeMetadata;
  readonly issuerTrusts: IssuerTrusts;
  readonly createPresentationRequest: CreatePresentationRequest;
  readonly serveRequestObject: ServeRequestObject;
  readonly receiveResponse: ReceiveResponse;
  readonly receiveDcApiResponse: ReceiveDcApiResponse;
  readonly saveConfiguration: ReplacePresentationConfiguration;
  /** The key chain of an external issuer. */
  issuer: KeyChain = undefined as unknown as KeyChain;
  readonly #chains = new Map<string, number>();

  constructor() {
    const { log } = this;
    const cipher = TEST_CIPHER;
    const provider = new LocalKms({ name: 'local', cipher, random: this.random });
    this.kms = new KmsRegistry({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
    const certificateAuthority = new X509Authority(this);
    const authorityPublisher = new AuthorityPublisher({ ...this, certificateAuthority });
    this.remoteStatusLists = new RemoteStatusLists({ ...this, log });
    this.statusVerifier = new StatusVerifier(this);
    this.revocationLists = new RevocationLists({ ...this, log, authorityPublisher });
    this.ocspResponders = new OcspResponders(this);
    this.revocationVerifier = new RevocationVerifier(this);
    this.registrationCertificates = new RegistrationCertificates({
      store: this.store,
      registrar: this.registrar,
      registrationCertificateVerifier: new RegistrationCertificateVerifier(this),
    });
    this.issuerRegistration = new IssuerRegistration(this);
    this.listSigners = new ListSigners(this);
    this.trustLists = new TrustLists({ ...this, log });
    this.issuerTrusts = new IssuerTrusts(this);
    this.typeMetadata = new TypeMetadata(this);
    this.createPresentationRequest = new CreatePresentationRequest(this);
    this.serveRequestObject = new ServeRequestObject({ ...this, openRequests: new OpenRequests(this) });
    this.saveConfiguration = new ReplacePresentationConfiguration(this);
    const responseIntake = new ResponseIntake({
      ...this,
      presentationVerifier: new PresentationVerifier({ ...this, issuerTrusts: this.issuerTrusts }),
      resultDelivery: new ResultDelivery({ ...this, log }),
      sessionOutcomes: new SessionOutcomes(this),
    });
    const unreadResponses = new RejectedResponses({ ...this, log });
    this.receiveResponse = new ReceiveResponse({ responseIntake, unreadResponses });
    this.receiveDcApiResponse = new ReceiveDcApiResponse({ responseIntake, unreadResponses });
  }

  static async make(): Promise<World> {
    const world = new World();
    await world.addTenant(ACME);
    world.issuer = await world.keyChain('elsewhere', 'signing', ['signing']);
    return world;
  }

  async addTenant(id: TenantId): Promise<void> {
    const now = this.clock.now();
    const settings = {
      description: null,
      status: 'active',
      sessionConfig: null,
      statusListConfig: null,
      kms: null,
      profile: null,
      endsAt: null,
      ...NO_ORGANIZATION,
    } as const;
    const tenant = { ...settings, id, name: id, revision: 1, version: 1, createdAt: now, updatedAt: now };
    const keyChains = [await this.keyChain(id, 'access', ['access']), await this.keyChain(id, 'signing', ['signing'])];
    const keys = keyChains.map(({ active }) => active.key.publicJwk.x);
    await this.prepare(`tenant ${id} with ${keys}`, async () => {
      await this.store.forService(({ tenants }) => tenants.add(tenant, { keyChains, clients: [] }), { by: 'system' });
    });
  }

  /** Runs `work` or restores its stored result, which must depend only on the name and the time. */
  protected prepare<T>(step: string, work: () => Promise<T>): Promise<T> {
    return this.store.prepare(`${step} at ${this.clock.time}`, work);
  }

  /** Shares key chains between worlds. One world never gets the same key chain twice. */
  keyChain(tenantId: string, id: string, usages: readonly KeyUsage[]): Promise<KeyChain> {
    const parameters = {
      tenantId,
      id,
      usages,
      subjectName: `${tenantId} ${id}`,
      publicUrl: 'https://vidimus.example',
      certificateSubject: NO_ORGANIZATION,
    };
    const key = JSON.stringify([parameters, this.clock.time]);
    const number = this.#chains.get(key) ?? 0;
    this.#chains.set(key, number + 1);
    const certificateAuthority = new X509Authority({ kms: this.kms, random: this.random });
    const keyChain = KEY_CHAINS.get(`${key} ${number}`) ?? createKeyChain({ ...this, certificateAuthority }, parameters);
    KEY_CHAINS.set(`${key} ${number}`, keyChain);
    return keyChain;
  }

  async caller(tenantId = ACME, allowed: readonly string[] | null = null): Promise<TenantCaller> {
    const state = await stepsOf(this.store, tenantId).state();
    if (state === undefined) throw new Error('no such tenant');
    return {
      tenantId,
      clientId: 'client',
      roles: ['presentation:manage', 'presentation:request'],
      allowedPresentationConfigs: allowed,
      allowedIssuanceConfigs: null,
      tenant: this.tenantConfigurations.forState(state),
    };
  }

  async configure(changes: JsonObject = {}, tenantId = ACME): Promise<void> {
    const body = PresentationConfigurationBody.parse({
      id: 'card',
      dcql_query: query({ id: 'card' }),
      webhook: { url: 'https://shop.example/hook' },
      trustAnchors: [{ certificate: pemOf(this.issuer) }, { keyChainId: 'signing' }],
      values: 'requested',
      ...changes,
    });
    const save = async () => {
      await this.saveConfiguration.execute(await this.caller(tenantId), body);
    };
    // The registrar is called for a certificate, so the result cannot be reused.
    if (body.registrationCert) await save();
    else await this.prepare(`presentation configuration of ${tenantId} ${JSON.stringify(body)}`, save);
  }

  /** Opens a session and fetches its request like a wallet. */
  async request(options: { tenantId?: TenantId; body?: JsonObject } = {}): Promise<FetchedRequest> {
    const { tenantId = ACME, body = {} } = options;
    const offer = await this.createPresentationRequest.execute(cachedCaller(await this.caller(tenantId)), {
      response_type: 'uri',
      requestId: 'card',
      ...body,
    });
    const session = await this.session(offer.session, tenantId);
    const text = await this.serveRequestObject.execute(tenantId, session.publicId);
    await this.fetchedSessions.flush();
    const claims = parseCompactJws(text)?.payload ?? {};
    const request = session.request as PostedVerification;
    return { tenantId, session, publicId: session.publicId, request, claims, text };
  }

  /** Returns a stored request that was fetched before. */
  preparedRequest(options: { tenantId?: TenantId; body?: JsonObject } = {}): Promise<FetchedRequest> {
    return this.prepare(`request ${JSON.stringify(options)}`, () => this.request(options));
  }

  /** Returns the stored session after pending writes. */
  async session(id: string, tenantId = ACME): Promise<Session> {
    await this.fetchedSessions.flush();
    const session = (await stepsOf(this.store, tenantId).session(id as Session['id']))?.session;
    if (session === undefined) throw new Error('no such session');
    return session;
  }

  sign(chain: KeyChain, input: string): Uint8Array {
    return this.kms.sign(signingKey(chain.tenantId, chain.active.key), input) as Uint8Array;
  }

  get seconds(): number {
    return Math.floor(this.clock.time / 1000);
  }
}

export type FetchedRequest = {
  readonly tenantId: TenantId;
  readonly session: Session;
  readonly publicId: PublicId;
  readonly request: PostedVerification;
  readonly claims: JsonObject;
  readonly text: string;
};

export function query(...credentials: readonly JsonObject[]): JsonObject {
  return {
    credentials: credentials.map((credential) => ({
      format: 'dc+sd-jwt',
      meta: { vct_values: [VCT] },
      claims: [{ path: ['name'] }],
      ...credential,
    })),
  };
}

export function pemOf(chain: KeyChain): string {
  return writePemCertificates([chain.root?.certificate ?? '']);
}

export type PresentationChanges = {
  readonly header?: JsonObject;
  readonly visible?: JsonObject;
  readonly claims?: JsonObject;
  readonly issuer?: KeyChain;
  readonly holder?: Holder;
  readonly kbHeader?: JsonObject;
  readonly kb?: Readonly<Record<string, Json | undefined>>;
  readonly kbSignature?: (signature: Buffer) => Uint8Array;
  readonly issuerSignature?: (signature: Uint8Array) => Uint8Array;
  /** Replaces properties in the signed payload of the issuer. */
  readonly payload?: JsonObject;
  /** Changes the SD-JWT before the key binding. */
  readonly credential?: (text: string) => string;
  /** Changes the whole presentation. */
  readonly text?: (text: string) => string;
};

/** Creates a presentation that is valid except for `changes`. */
export function present(world: World, fetchedRequest: FetchedRequest, changes: PresentationChanges = {}): string {
  const { issuer = world.issuer, holder = world.holder } = changes;
  const now = world.seconds;
  const prepared = prepareSdJwt({
    header: withoutUndefined({ alg: 'ES256', typ: 'dc+sd-jwt', x5c: signingChain(issuer), ...changes.header }),
    alwaysVisible: withoutUndefined({ vct: VCT, iat: now - 100, cnf: { jwk: world.holder.jwk }, ...changes.visible }),
    claims: { name: 'Erika', age: 42, over18: false, ...changes.claims },
    frame: parseDisclosureFrame({ _sd: ['name', 'age', 'over18'], _sd_decoy: 1 }),
    random: (length) => world.random.bytes(length),
  });
  const signingInput = changes.payload ? rewritePayload(prepared.signingInput, changes.payload) : prepared.signingInput;
  const signature = world.sign(issuer, signingInput);
  const sdJwt = sealSdJwt({ ...prepared, signingInput }, changes.issuerSignature?.(signature) ?? signature);
  const credential = changes.credential?.(sdJwt) ?? sdJwt;
  const payload = withoutUndefined({
    iat: now,
    aud: fetchedRequest.request.clientId,
    nonce: fetchedRequest.request.nonce,
    sd_hash: hash('sha256', credential, 'base64url'),
    ...changes.kb,
  });
  const input = buildSigningInput(withoutUndefined({ alg: 'ES256', typ: 'kb+jwt', ...changes.kbHeader }), payload);
  const raw = sign('sha256', Buffer.from(input), { key: holder.privateKey, dsaEncoding: 'ieee-p1363' });
  const text = credential + joinCompact(input, changes.kbSignature?.(raw) ?? raw);
  return changes.text?.(text) ?? text;
}

function rewritePayload(signingInput: string, changes: JsonObject): string {
  const { header, payload } = parseCompactJws(`${signingInput}.`) ?? { header: {}, payload: {} };
  return buildSigningInput(header, { ...payload, ...changes });
}

function withoutUndefined(properties: Readonly<Record<string, Json | undefined>>): JsonObject {
  return JSON.parse(JSON.stringify(properties)) as JsonObject;
}

export type EncryptionChanges = {
  readonly enc?: string;
  readonly alg?: string;
  readonly header?: Record<string, unknown>;
  readonly jwk?: JsonObject;
};

export async function encrypt(fetchedRequest: FetchedRequest, plaintext: unknown, changes: EncryptionChanges = {}): Promise<string> {
  const jwk = changes.jwk ?? fetchedRequest.request.encryption?.publicJwk ?? {};
  const { enc = 'A256GCM', alg = 'ECDH-ES' } = changes;
  const text = typeof plaintext === 'string' ? plaintext : JSON.stringify(plaintext);
  return new CompactEncrypt(new TextEncoder().encode(text))
    .setProtectedHeader({ alg, enc, kid: String(jwk['kid']), ...changes.header })
    .encrypt(await importJWK({ ...jwk, alg }, alg));
}

/** Returns the form of a valid response in the requested mode. */
export async function responseForm(fetchedRequest: FetchedRequest, vpToken: unknown): Promise<Record<string, string>> {
  const { state, responseMode } = fetchedRequest.request;
  if (responseMode === 'direct_post') return { vp_token: JSON.stringify(vpToken), state };
  return { response: await encrypt(fetchedRequest, { vp_token: vpToken, state }) };
}
