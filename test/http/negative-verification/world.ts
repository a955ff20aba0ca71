import { expect } from 'chai';
import { Clock } from '../../../application/ports/clock.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import { obtain } from '../../../bootstrap/wiring/wire.ts';
import { dcApiTranscript, redirectTranscript } from '../../../domain/formats/mdoc/session-transcript.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import { Backend } from '../../support/backend.ts';
import { type MdocBase, type MdocOverrides, presentMdoc } from '../../support/mdoc-maker.ts';
import { decode, encryptResponse, type FetchedRequest, postResponse, requestPresentation, responseForm } from '../../support/present.ts';
import { newKey, now } from '../../support/raw-wallet.ts';
import { type JsonProperties, presentSdJwt, type SdJwtBase, type SdJwtOverrides, type Signer } from '../../support/sd-jwt-maker.ts';
import { type CertifiedKey, certify, DOCUMENT_SIGNER, pem } from '../../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../../support/test-service.ts';

export const VCT = 'urn:card:1';
export const DOC_TYPE = 'org.iso.18013.5.1.mDL';
export const NAMESPACE = 'org.iso.18013.5.1';

/** Requests the card of the trusted issuer. */
export const CARD_QUERY = { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [VCT] }, claims: [{ path: ['name'] }] };
export const LICENCE_QUERY = {
  id: 'licence',
  format: 'mso_mdoc',
  meta: { doctype_value: DOC_TYPE },
  claims: [{ path: [NAMESPACE, 'family_name'] }],
};
/** A second card, which is valid in every case. */
export const PASS_QUERY = { ...CARD_QUERY, id: 'pass', meta: { vct_values: ['urn:pass:1'] } };

/** The page that sends the request through the Digital Credentials API. */
export const PAGE = 'https://shop.example';
export const THROUGH_PAGE = { expectedOrigins: [PAGE] };

type Tenant = 'shop' | 'rival';

/** The common environment of all cases: two verifiers, a backend, and an external issuer of cards and licences. */
export type World = {
  readonly service: TestService;
  readonly backend: Backend;
  readonly authority: CertifiedKey;
  readonly issuer: Signer;
  admin(method: string, path: string, json?: unknown, tenant?: Tenant): Promise<Answer>;
  /** Returns the identifier of a presentation configuration, which is created once for each content. */
  configured(changes: JsonProperties, tenant?: Tenant): Promise<string>;
  /** Creates a request with a link, or for a page if the configuration has expected origins. */
  ask(changes?: JsonProperties, tenant?: Tenant): Promise<FetchedRequest>;
  card(request: FetchedRequest, changes?: SdJwtOverrides): string;
  pass(request: FetchedRequest, changes?: SdJwtOverrides): string;
  licence(request: FetchedRequest, changes?: MdocOverrides): string;
  /** Transcript of the request, with optional changes. */
  transcript(request: FetchedRequest, changes?: Partial<Parameters<typeof redirectTranscript>[0]>): Buffer;
  /** Transcript of a request of a page, with optional changes. */
  pageTranscript(request: FetchedRequest, changes?: Partial<Parameters<typeof dcApiTranscript>[0]>): Buffer;
  /** Sends the response in the response mode of the request. */
  answer(request: FetchedRequest, vpToken: unknown): Promise<Answer>;
  session(request: FetchedRequest, tenant?: Tenant): Promise<JsonProperties>;
  /** Bodies of the webhook calls for this session. */
  webhookBodies(request: FetchedRequest): readonly JsonProperties[];
  /** Advances the clock of the service during `work`. */
  later<T>(seconds: number, work: () => Promise<T>): Promise<T>;
  /** Creates a client of the shop. @returns a function that gets an access token at the current time of the service. */
  client(rights?: JsonProperties): Promise<() => Promise<string>>;
  /** Adds a check that runs at the end of the case. */
  afterwards(check: () => Promise<void>): void;
  /** Runs the added checks. */
  runChecks(): Promise<void>;
  close(): Promise<void>;
};

export async function openWorld(): Promise<World> {
  const backend = await Backend.start();
  const service = await startTestService();
  const tokens = new Map<Tenant, string>();
  for (const id of ['shop', 'rival'] as const) tokens.set(id, (await createTenant(service, id)).token);
  const ca = await certify({ name: 'Authority', ca: true });
  const leaf = await certify({ name: 'Issuer', by: ca, ...DOCUMENT_SIGNER });
  const issuer = { key: leaf, chain: [leaf.certificate] };
  const holder = newKey();
  const configurationIds = new Map<string, string>();
  const checks: (() => Promise<void>)[] = [];
  let clients = 0;
  const clock = service.service.container.get(Clock);

  const admin: World['admin'] = (method, path, json, tenant = 'shop') =>
    service.call(method, path, { token: tokens.get(tenant) ?? '', ...(json === undefined ? {} : { json }) });
  const configured: World['configured'] = async (changes, tenant = 'shop') => {
    // An explicitly undefined property is different content.
    const content = JSON.stringify([tenant, changes], (_, value) => (value === undefined ? 'absent' : value));
    const id = configurationIds.get(content) ?? `c${configurationIds.size}`;
    if (configurationIds.has(content)) return id;
    const body = {
      id,
      dcql_query: { credentials: [CARD_QUERY] },
      trustAnchors: [{ certificate: pem(ca) }],
      values: 'requested',
      webhook: { url: `${backend.url}/hook` },
      ...changes,
    };
    const creation = await admin('POST', '/verifier/config', body, tenant);
    expect(creation.status, creation.text).to.equal(201);
    configurationIds.set(content, id);
    return id;
  };
  const client: World['client'] = async (rights = {}) => {
    const clientId = `client-${clients++}`;
    const secret = `secret-of-${clientId}-0123456789`;
    const body = { clientId, secret, roles: ['presentation:request'], ...rights };
    const creation = await admin('POST', '/client', body);
    expect(creation.status, creation.text).to.equal(201);
    const json = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
    return async () => (await service.call('POST', '/oauth2/token', { json })).body.access_token;
  };
  const sdJwtBase = ({ payload }: FetchedRequest, visible: JsonProperties): SdJwtBase => ({
    issuer,
    holder,
    visible,
    hidden: { name: 'Erika', age: 42, over18: false },
    audience: isOfPage(payload) ? `origin:${PAGE}` : payload['client_id'],
    nonce: payload['nonce'],
    now: now(),
  });
  const transcript: World['transcript'] = ({ payload }, changes) => {
    const { client_id: clientId, nonce, response_uri: responseUri } = payload;
    return redirectTranscript({ clientId, nonce, responseUri, encryptionKey: keyOf(payload), ...changes });
  };
  const pageTranscript: World['pageTranscript'] = ({ payload }, changes) =>
    dcApiTranscript({ origin: PAGE, nonce: payload['nonce'], encryptionKey: keyOf(payload), ...changes });
  const createPageRequest = async (requestId: string, tenant: Tenant): Promise<FetchedRequest> => {
    const creation = await admin('POST', '/verifier/offer', { response_type: 'dc-api', requestId }, tenant);
    expect(creation.status, creation.text).to.equal(201);
    const { session, uri, dcApi } = creation.body;
    const text = dcApi.requests[0].data.request as string;
    return { session, uri, url: uri, text, ...decode(text) };
  };
  const mdocBase = (request: FetchedRequest): MdocBase => ({
    issuer,
    holder,
    docType: DOC_TYPE,
    elements: { [NAMESPACE]: { family_name: 'Nygård', age_over_18: true, height: 170 } },
    transcript: isOfPage(request.payload) ? pageTranscript(request) : transcript(request),
    now: now(),
  });
  return {
    service,
    backend,
    authority: ca,
    issuer,
    admin,
    configured,
    transcript,
    pageTranscript,
    client,
    async ask(changes = {}, tenant = 'shop') {
      const id = await configured(changes, tenant);
      if (changes['expectedOrigins'] !== undefined) return createPageRequest(id, tenant);
      return requestPresentation(service, tokens.get(tenant) ?? '', id);
    },
    card: (request, changes) => presentSdJwt(sdJwtBase(request, { vct: VCT }), changes),
    pass: (request, changes) => presentSdJwt(sdJwtBase(request, { vct: 'urn:pass:1' }), changes),
    licence: (request, changes) => presentMdoc(mdocBase(request), changes),
    async answer(request, vpToken) {
      if (!isOfPage(request.payload)) return postResponse(service, request, await responseForm(request, vpToken));
      const response = { vp_token: vpToken };
      const isUnencrypted = request.payload['response_mode'] === 'dc_api';
      const json = isUnencrypted ? response : { response: await encryptResponse(request, response) };
      return service.call('POST', request.uri, { json });
    },
    session: async ({ session }, tenant) => (await admin('GET', `/session/${session}`, undefined, tenant)).body,
    webhookBodies: ({ session }) =>
      backend
        .callsTo('/hook')
        .map(({ body }) => body)
        .filter((body) => body.session === session),
    async later(seconds, work) {
      // Otherwise recent fetches could be written with the advanced time, after the expiry of their sessions.
      await obtain(service.service.container, FetchedSessions).flush();
      const originalNow = clock.now.bind(clock);
      clock.now = () => new Date(originalNow().getTime() + seconds * 1000);
      try {
        return await work();
      } finally {
        clock.now = originalNow;
      }
    },
    afterwards: (check) => checks.push(check),
    async runChecks() {
      for (const check of checks.splice(0)) await check();
    },
    async close() {
      await service.close();
      await backend.close();
    },
  };
}

const isOfPage = (payload: JsonProperties) => String(payload['response_mode']).startsWith('dc_api');
const keyOf = (payload: JsonProperties): PublicJwk | undefined => payload['client_metadata'].jwks?.keys[0];

type Row = { readonly row: number; readonly title: string };

/** A body that is rejected as a configuration or request. */
export type ConfigurationCase = Row & {
  /** Changes of an otherwise valid presentation configuration. */
  readonly body?: JsonProperties;
  readonly run?: (world: World) => Promise<Answer>;
  readonly status?: number;
};

/** The expected result of a whole response. */
export type Expected = {
  readonly status: number;
  readonly session: 'active' | 'fetched' | 'completed' | 'expired' | 'failed';
  /** Code of the session's failure. */
  readonly code?: string;
  /** True if a valid response is still accepted afterwards. */
  readonly staysOpen?: boolean;
};

/** An invalid response to a request that the wallet has fetched. */
export type Case = Row & {
  readonly configuration?: JsonProperties;
  readonly run: (world: World, request: FetchedRequest) => Promise<Answer>;
  readonly expected: Expected;
  /** Further assertions. */
  readonly assertAfter?: (world: World, request: FetchedRequest) => Promise<void>;
};

/** An invalid presentation in an otherwise valid response. */
export type PresentationCase = Row & {
  readonly reason: RefusalReason;
  readonly format?: 'mso_mdoc';
  /** Changes of its credential query. */
  readonly query?: JsonProperties;
  readonly configuration?: JsonProperties | ((world: World) => JsonProperties | Promise<JsonProperties>);
  /** Detail of the failed check in the report. */
  readonly detail?: RegExp;
  /**
   * `discarded`: other valid presentations of the response count. `spoilsAll`: the whole response is rejected. `needed`:
   * the response is invalid without it, so that no other presentation is sent.
   */
  readonly effect?: 'discarded' | 'spoilsAll' | 'needed';
  readonly present: (world: World, request: FetchedRequest) => string | Promise<string>;
};

type ChangesOf<B> = B | ((world: World, request: FetchedRequest) => B | Promise<B>);

/** Creates cases from presentations with one change each. */
export const createCases =
  <B extends object>(
    present: (world: World, request: FetchedRequest, changes: B) => string | Promise<string>,
    common: Partial<PresentationCase> = {},
  ) =>
  (
    row: number,
    reason: RefusalReason,
    changesByTitle: Readonly<Record<string, ChangesOf<B>>>,
    more: Partial<PresentationCase> = {},
  ): readonly PresentationCase[] =>
    Object.entries(changesByTitle).map(([title, changes]) => ({
      row,
      title,
      reason,
      ...common,
      async present(world, request) {
        return present(world, request, typeof changes === 'function' ? await changes(world, request) : changes);
      },
      ...more,
    }));

/** The response is rejected, and the session fails. */
export const rejected = (code: string): Expected => ({ status: 400, session: 'failed', code });
/** The response is rejected, and the session is unchanged. */
export const stillOpen = (status = 400): Expected => ({ status, session: 'fetched', staysOpen: true });
/** The response is an error of the wallet, and the session fails. */
export const failedByWallet = (code: string): Expected => ({ status: 200, session: 'failed', code });
export const accepted: Expected = { status: 200, session: 'completed' };
