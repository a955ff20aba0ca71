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

/** Asks for the card of the issuer that everybody trusts. */
export const CARD_QUERY = { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [VCT] }, claims: [{ path: ['name'] }] };
export const LICENCE_QUERY = {
  id: 'licence',
  format: 'mso_mdoc',
  meta: { doctype_value: DOC_TYPE },
  claims: [{ path: [NAMESPACE, 'family_name'] }],
};
/** A second card, which is good in every case. */
export const PASS_QUERY = { ...CARD_QUERY, id: 'pass', meta: { vct_values: ['urn:pass:1'] } };

/** The page that asks through the Digital Credentials API. */
export const PAGE = 'https://shop.example';
export const THROUGH_PAGE = { expectedOrigins: [PAGE] };

type Tenant = 'shop' | 'rival';

/** What every case starts from: two verifiers, a backend, and an issuer of cards and licences from elsewhere. */
export type World = {
  readonly service: TestService;
  readonly backend: Backend;
  readonly authority: CertifiedKey;
  readonly issuer: Signer;
  admin(method: string, path: string, json?: unknown, tenant?: Tenant): Promise<Answer>;
  /** The id of a presentation configuration; one is made for each content. */
  configured(changes: JsonProperties, tenant?: Tenant): Promise<string>;
  /** By a link; by a page where the configuration names one. */
  ask(changes?: JsonProperties, tenant?: Tenant): Promise<FetchedRequest>;
  card(asked: FetchedRequest, bend?: SdJwtOverrides): string;
  pass(asked: FetchedRequest, bend?: SdJwtOverrides): string;
  licence(asked: FetchedRequest, bend?: MdocOverrides): string;
  /** Transcript of the request, or of one that is bent. */
  transcript(asked: FetchedRequest, bend?: Partial<Parameters<typeof redirectTranscript>[0]>): Buffer;
  /** The same for a page. */
  pageTranscript(asked: FetchedRequest, bend?: Partial<Parameters<typeof dcApiTranscript>[0]>): Buffer;
  /** Answers in the mode that was asked for. */
  answer(asked: FetchedRequest, vpToken: unknown): Promise<Answer>;
  session(asked: FetchedRequest, tenant?: Tenant): Promise<JsonProperties>;
  /** What the backend was told about this session. */
  told(asked: FetchedRequest): readonly JsonProperties[];
  /** Until `work` is over, the service's clock is ahead. */
  later<T>(seconds: number, work: () => Promise<T>): Promise<T>;
  /** A client of the shop. @returns what makes a token at the service's present time. */
  client(rights?: JsonProperties): Promise<() => Promise<string>>;
  /** Has something looked at when the case is over. */
  afterwards(check: () => Promise<void>): void;
  /** Looks at it. */
  settle(): Promise<void>;
  close(): Promise<void>;
};

export async function openWorld(): Promise<World> {
  const backend = await Backend.start();
  const service = await startTestService();
  const tokens = new Map<Tenant, string>();
  for (const id of ['shop', 'rival'] as const) tokens.set(id, (await createTenant(service, id)).token);
  const authority = await certify({ name: 'Authority', ca: true });
  const leaf = await certify({ name: 'Issuer', by: authority, ...DOCUMENT_SIGNER });
  const issuer = { key: leaf, chain: [leaf.certificate] };
  const holder = newKey();
  const known = new Map<string, string>();
  const checks: (() => Promise<void>)[] = [];
  let clients = 0;
  const clock = service.service.container.get(Clock);

  const admin: World['admin'] = (method, path, json, tenant = 'shop') =>
    service.call(method, path, { token: tokens.get(tenant) ?? '', ...(json === undefined ? {} : { json }) });
  const configured: World['configured'] = async (changes, tenant = 'shop') => {
    // A member that is left out on purpose makes another content.
    const content = JSON.stringify([tenant, changes], (_, value) => (value === undefined ? 'absent' : value));
    const id = known.get(content) ?? `c${known.size}`;
    if (known.has(content)) return id;
    const body = {
      id,
      dcql_query: { credentials: [CARD_QUERY] },
      trustAnchors: [{ certificate: pem(authority) }],
      values: 'requested',
      webhook: { url: `${backend.url}/hook` },
      ...changes,
    };
    const written = await admin('POST', '/verifier/config', body, tenant);
    expect(written.status, written.text).to.equal(201);
    known.set(content, id);
    return id;
  };
  const client: World['client'] = async (rights = {}) => {
    const clientId = `client-${clients++}`;
    const secret = `secret-of-${clientId}-0123456789`;
    const body = { clientId, secret, roles: ['presentation:request'], ...rights };
    const made = await admin('POST', '/client', body);
    expect(made.status, made.text).to.equal(201);
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
  const transcript: World['transcript'] = ({ payload }, bend) => {
    const { client_id: clientId, nonce, response_uri: responseUri } = payload;
    return redirectTranscript({ clientId, nonce, responseUri, encryptionKey: keyOf(payload), ...bend });
  };
  const pageTranscript: World['pageTranscript'] = ({ payload }, bend) =>
    dcApiTranscript({ origin: PAGE, nonce: payload['nonce'], encryptionKey: keyOf(payload), ...bend });
  const askThroughPage = async (requestId: string, tenant: Tenant): Promise<FetchedRequest> => {
    const made = await admin('POST', '/verifier/offer', { response_type: 'dc-api', requestId }, tenant);
    expect(made.status, made.text).to.equal(201);
    const { session, uri, dcApi } = made.body;
    const text = dcApi.requests[0].data.request as string;
    return { session, uri, url: uri, text, ...decode(text) };
  };
  const mdocBase = (asked: FetchedRequest): MdocBase => ({
    issuer,
    holder,
    docType: DOC_TYPE,
    elements: { [NAMESPACE]: { family_name: 'Nygård', age_over_18: true, height: 170 } },
    transcript: isOfPage(asked.payload) ? pageTranscript(asked) : transcript(asked),
    now: now(),
  });
  return {
    service,
    backend,
    authority,
    issuer,
    admin,
    configured,
    transcript,
    pageTranscript,
    client,
    async ask(changes = {}, tenant = 'shop') {
      const id = await configured(changes, tenant);
      if (changes['expectedOrigins'] !== undefined) return askThroughPage(id, tenant);
      return requestPresentation(service, tokens.get(tenant) ?? '', id);
    },
    card: (asked, bend) => presentSdJwt(sdJwtBase(asked, { vct: VCT }), bend),
    pass: (asked, bend) => presentSdJwt(sdJwtBase(asked, { vct: 'urn:pass:1' }), bend),
    licence: (asked, bend) => presentMdoc(mdocBase(asked), bend),
    async answer(asked, vpToken) {
      if (!isOfPage(asked.payload)) return postResponse(service, asked, await responseForm(asked, vpToken));
      const plain = { vp_token: vpToken };
      const isPlain = asked.payload['response_mode'] === 'dc_api';
      const json = isPlain ? plain : { response: await encryptResponse(asked, plain) };
      return service.call('POST', asked.uri, { json });
    },
    session: async ({ session }, tenant) => (await admin('GET', `/session/${session}`, undefined, tenant)).body,
    told: ({ session }) =>
      backend
        .callsTo('/hook')
        .map(({ body }) => body)
        .filter((body) => body.session === session),
    async later(seconds, work) {
      // Otherwise fetches that were noted a moment ago could be written as of then, when their sessions are over.
      await obtain(service.service.container, FetchedSessions).flush();
      const own = clock.now.bind(clock);
      clock.now = () => new Date(own().getTime() + seconds * 1000);
      try {
        return await work();
      } finally {
        clock.now = own;
      }
    },
    afterwards: (check) => checks.push(check),
    async settle() {
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

type Row = { readonly row: number; readonly what: string };

/** One body that no configuration or request may be made of. */
export type ConfigurationCase = Row & {
  /** Changes a presentation configuration that would be taken. */
  readonly body?: JsonProperties;
  readonly run?: (world: World) => Promise<Answer>;
  readonly status?: number;
};

/** What has to come of a response as a whole. */
export type Expected = {
  readonly status: number;
  readonly session: 'active' | 'fetched' | 'completed' | 'expired' | 'failed';
  /** Of the session's failure. */
  readonly code?: string;
  /** Whether the right answer is still taken afterwards. */
  readonly answerable?: boolean;
};

/** One wrong move around a request that was asked and fetched. */
export type Case = Row & {
  readonly configuration?: JsonProperties;
  readonly run: (world: World, asked: FetchedRequest) => Promise<Answer>;
  readonly expected: Expected;
  /** What else has to hold. */
  readonly also?: (world: World, asked: FetchedRequest) => Promise<void>;
};

/** One wrong presentation in a response that is right otherwise. */
export type PresentationCase = Row & {
  readonly reason: RefusalReason;
  readonly format?: 'mso_mdoc';
  /** Changes the query that it answers. */
  readonly query?: JsonProperties;
  readonly configuration?: JsonProperties | ((world: World) => JsonProperties | Promise<JsonProperties>);
  /** What the operator reads about it. */
  readonly detail?: RegExp;
  /**
   * `discarded`: a good presentation beside it still counts. `spoilsAll`: it takes the whole response with it. `needed`:
   * the response cannot be good without it, so that nothing is tried beside it.
   */
  readonly effect?: 'discarded' | 'spoilsAll' | 'needed';
  readonly present: (world: World, asked: FetchedRequest) => string | Promise<string>;
};

type BendOf<B> = B | ((world: World, asked: FetchedRequest) => B | Promise<B>);

/** Makes cases from presentations that are bent in one way each. */
export const bending =
  <B extends object>(
    present: (world: World, asked: FetchedRequest, bend: B) => string | Promise<string>,
    common: Partial<PresentationCase> = {},
  ) =>
  (
    row: number,
    reason: RefusalReason,
    bends: Readonly<Record<string, BendOf<B>>>,
    more: Partial<PresentationCase> = {},
  ): readonly PresentationCase[] =>
    Object.entries(bends).map(([what, bend]) => ({
      row,
      what,
      reason,
      ...common,
      async present(world, asked) {
        return present(world, asked, typeof bend === 'function' ? await bend(world, asked) : bend);
      },
      ...more,
    }));

/** R400 of the table: refused, and the session has ended. */
export const refused = (code: string): Expected => ({ status: 400, session: 'failed', code });
/** K of the table: refused, and the session is as it was. */
export const kept = (status = 400): Expected => ({ status, session: 'fetched', answerable: true });
/** F of the table: an error of the wallet. */
export const noted = (code: string): Expected => ({ status: 200, session: 'failed', code });
export const accepted: Expected = { status: 200, session: 'completed' };
