import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, importJWK } from 'jose';
import { Backend } from './backend.ts';
import { Browser, type BrowserResponse } from './chained-world.ts';
import { type HeldCredential, issue, QUERY } from './present.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, CODE_VERIFIER, dpopProof, type HolderKey, makeJwt, now, RawWallet } from './raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from './test-service.ts';

/** The protocol names in the three versions of the draft. */
export type DraftVariant = {
  readonly name: string;
  readonly presentation: string;
  readonly web: string;
  readonly responseMode: string;
  readonly prefix: string;
  readonly required: { readonly status: number; readonly type: string; readonly rest: object };
  readonly codeMember: string;
  readonly completionProperties: object;
  readonly sessionError: string;
};

const EARLIER_DRAFT = {
  responseMode: 'iae_post',
  prefix: 'iae:',
  required: { status: 200, type: 'type', rest: { status: 'require_interaction' } },
  codeMember: 'code',
  completionProperties: { status: 'ok' },
  sessionError: 'invalid_request',
} as const;
export const CURRENT_DRAFT: DraftVariant = {
  name: 'the current text',
  presentation: 'urn:openid:dcp:ia:openid4vp_presentation',
  web: 'urn:openid:dcp:ia:auth_via_web',
  responseMode: 'ia_post',
  prefix: 'ia:',
  required: { status: 401, type: 'interaction_type_required', rest: { error: 'insufficient_authorization' } },
  codeMember: 'authorization_code',
  completionProperties: {},
  sessionError: 'invalid_session',
};
export const DRAFT_VARIANTS: readonly DraftVariant[] = [
  CURRENT_DRAFT,
  {
    ...EARLIER_DRAFT,
    name: 'the draft of spring 2026',
    presentation: 'urn:openid:dcp:iae:openid4vp_presentation',
    web: 'urn:openid:dcp:iae:redirect_to_web',
  },
  { ...EARLIER_DRAFT, name: 'the first drafts', presentation: 'openid4vp_presentation', web: 'redirect_to_web' },
];

type Form = Readonly<Record<string, string>>;

/** The interaction that the service requires of a wallet. */
export type RequiredInteraction = {
  readonly authSession: string;
  // biome-ignore lint/suspicious/noExplicitAny: requests of every shape
  readonly request: any;
  readonly requestUri: string;
};

/** A wallet that goes through interactive authorizations step by step. */
export class InteractiveWallet extends RawWallet {
  readonly draft: DraftVariant;
  /** Browser of the wallet's user. */
  readonly browser = new Browser();

  constructor(service: TestService, tenant: string, draft: DraftVariant = CURRENT_DRAFT) {
    super(service, tenant);
    this.draft = draft;
  }

  get endpoint(): string {
    return `${this.issuer}/interactive-authorization`;
  }

  /** An empty value omits a parameter. */
  post(form: Form, headers: Record<string, string> = {}): Promise<Answer> {
    const fields = Object.entries(form).filter(([, value]) => value !== '');
    return this.service.call('POST', this.endpoint, { form: Object.fromEntries(fields), headers });
  }

  /** Starts an authorization for the offer behind a link, if any. */
  async begin(uri: string | undefined, form: Form = {}, headers: Record<string, string> = {}): Promise<Answer> {
    const types = `${this.draft.web}, ${this.draft.presentation}`;
    const parameters = { ...AUTHORIZATION_REQUEST, interaction_types_supported: types, ...form };
    if (uri === undefined) return this.post(parameters, headers);
    const { grants } = (await this.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
    return this.post({ issuer_state: grants.authorization_code.issuer_state, ...parameters }, headers);
  }

  /** Parses the response that requires an interaction. */
  expectInteraction(answer: Answer, type: string): RequiredInteraction {
    const { status, type: typeProperty, rest } = this.draft.required;
    expect(answer.status, answer.text).to.equal(status);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const { auth_session, openid4vp_request, request_uri, expires_in, ...others } = answer.body;
    expect(others).to.deep.equal({ ...rest, [typeProperty]: type });
    expect(auth_session).to.match(/^[\w-]+\.[\w-]{43}$/);
    if (type === this.draft.presentation) expect([request_uri, expires_in]).to.deep.equal([undefined, undefined]);
    else expect([openid4vp_request, expires_in]).to.deep.equal([undefined, 60]);
    return { authSession: auth_session, request: openid4vp_request, requestUri: request_uri };
  }

  expectPresentationStep(answer: Answer): RequiredInteraction {
    return this.expectInteraction(answer, this.draft.presentation);
  }

  expectWebStep(answer: Answer): RequiredInteraction {
    return this.expectInteraction(answer, this.draft.web);
  }

  /** Parses the response with the code. */
  expectCode(answer: Answer): string {
    expect(answer.status, answer.text).to.equal(200);
    const { [this.draft.codeMember]: code, ...others } = answer.body;
    expect(others).to.deep.equal(this.draft.completionProperties);
    return code;
  }

  get audience(): string {
    return this.draft.prefix + new URL(this.service.address).origin;
  }

  /** A valid presentation of `credential` with overrides of the key binding. */
  bind(interaction: RequiredInteraction, credential: HeldCredential, overrides: Record<string, unknown> = {}): string {
    const payload = {
      iat: now(),
      aud: this.audience,
      nonce: interaction.request.nonce,
      sd_hash: createHash('sha256').update(credential.text).digest('base64url'),
      ...overrides,
    };
    return credential.text + makeJwt(credential.holder, { alg: 'ES256', typ: 'kb+jwt' }, payload);
  }

  present(interaction: RequiredInteraction, credential: HeldCredential, overrides: Record<string, unknown> = {}): Promise<Answer> {
    return this.respond(interaction, { vp_token: { card: [this.bind(interaction, credential, overrides)] } });
  }

  respond({ authSession }: RequiredInteraction, response: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const text = typeof response === 'string' ? response : JSON.stringify(response);
    return this.post({ auth_session: authSession, openid4vp_response: text }, headers);
  }

  /** Opens the browser at the authorization endpoint. */
  open({ requestUri }: RequiredInteraction, clientId = CLIENT_ID, browser = this.browser): Promise<BrowserResponse> {
    const query = new URLSearchParams({ client_id: clientId, request_uri: requestUri });
    return browser.visit(`${this.service.address}/${this.tenant}/authorize?${query}`);
  }

  /** Opens the browser and approves the wallet if required. @returns the response with the redirect. */
  async browse(interaction: RequiredInteraction, clientId = CLIENT_ID, browser = this.browser): Promise<BrowserResponse> {
    const page = await this.open(interaction, clientId, browser);
    return page.status === 200 ? browser.press(page, 'approve') : page;
  }

  /** Visits the customer's page and returns. @returns the redirect to the wallet. */
  async visit(interaction: RequiredInteraction): Promise<{ page: URL; back: URL }> {
    const fields = await this.browse(interaction);
    expect(fields.status, fields.text).to.equal(303);
    const { location: page } = fields;
    if (page === undefined) throw new Error('no page to go to');
    const returned = await this.browser.visit(page.searchParams.get('return_to') ?? '');
    expect(returned.status, returned.text).to.equal(302);
    return { page, back: new URL(returned.headers.get('location') ?? '') };
  }

  /** The code in the redirect after the last step. */
  codeFrom(redirect: URL | undefined): string {
    const { code = '', ...others } = Object.fromEntries(redirect?.searchParams ?? []);
    expect(others).to.deep.equal({ keep: 'this', state: 'state of the wallet', iss: this.issuer });
    expect(code).to.match(/^[\w-]{43}$/);
    return code;
  }

  /** Continues after the browser returned. */
  resume(redirect: URL, verifier = CODE_VERIFIER): Promise<Answer> {
    return this.post({ auth_session: redirect.searchParams.get('auth_session') ?? '', code_verifier: verifier });
  }

  proof(key: HolderKey = this.dpopKey): Record<string, string> {
    return { DPoP: dpopProof(key, this.endpoint) };
  }
}

/** Encrypts a response to the key of the request. */
export async function encryptFor({ request }: RequiredInteraction, plaintext: unknown): Promise<string> {
  const [jwk] = request.client_metadata.jwks.keys;
  return new CompactEncrypt(Buffer.from(JSON.stringify(plaintext)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk.kid })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}

const display = [{ name: 'Card', locale: 'en' }];
const CLAIMS = { claims: { name: 'Ada', age: 36 }, disclosureFrame: { _sd: ['name', 'age'] } };

/** An issuer of a badge for holders of its card or visitors of a page. */
export class Issuer {
  readonly service: TestService;
  readonly backend: Backend;
  readonly token: string;
  readonly id: string;

  private constructor(service: TestService, backend: Backend, id: string, token: string) {
    this.service = service;
    this.backend = backend;
    this.id = id;
    this.token = token;
  }

  static async open(environment: Record<string, string> = {}): Promise<Issuer> {
    const service = await startTestService(environment);
    const { id, token } = await createTenant(service, 'acme');
    const issuer = new Issuer(service, await Backend.start(), id, token);
    const page = `${issuer.backend.url}/page?visit={auth_session}`;
    await issuer.create('/issuer/config', { display });
    for (const overrides of [{ id: 'card' }, { id: 'card-status', statusManagement: true }]) {
      await issuer.create('/issuer/credentials', { ...CLAIMS, ...overrides, config: { format: 'dc+sd-jwt', display }, vct: 'urn:card:1' });
    }
    await issuer.addPresentationConfig('check');
    await issuer.addPresentationConfig('encrypted', { responseMode: 'direct_post.jwt' });
    await issuer.addBadge('badge', [{ type: 'openid4vp_presentation', presentationConfigId: 'check' }]);
    await issuer.addBadge('sealed', [{ type: 'openid4vp_presentation', presentationConfigId: 'encrypted' }]);
    await issuer.addBadge('visitor', [{ type: 'redirect_to_web', url: page }]);
    await issuer.addBadge('both', [
      { type: 'openid4vp_presentation', presentationConfigId: 'check', label: 'Show your card' },
      { type: 'redirect_to_web', url: page },
    ]);
    await issuer.addBadge('tour', [
      { type: 'redirect_to_web', url: page },
      { type: 'redirect_to_web', url: `${page}&second=1` },
    ]);
    await issuer.addBadge('plain', []);
    return issuer;
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.backend.close();
  }

  async create(path: string, json: object): Promise<void> {
    const response = await this.service.call('POST', path, { token: this.token, json });
    expect(response.status, response.text).to.equal(201);
  }

  /** Creates a presentation configuration that trusts the cards of this issuer by default. */
  addPresentationConfig(id: string, overrides: object = {}): Promise<void> {
    const defaults = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'signing' }], values: 'requested' };
    return this.create('/verifier/config', { id, responseMode: 'direct_post', ...defaults, ...overrides });
  }

  /** Creates a credential configuration whose claims come from the backend. */
  addBadge(id: string, iaeActions: readonly object[]): Promise<void> {
    this.backend.on('/claims', (response, call) => {
      const [presentation] = call.body.credentials;
      const claims = { role: presentation === undefined ? 'visitor' : `friend of ${presentation.values.name}` };
      response.end(JSON.stringify({ [call.body.credential_configuration_id]: claims }));
    });
    return this.create('/issuer/credentials', {
      id,
      config: { format: 'dc+sd-jwt', display },
      vct: `urn:${id}:1`,
      disclosureFrame: { _sd: ['role'] },
      claimsWebhook: { url: `${this.backend.url}/claims` },
      iaeActions,
    });
  }

  /** `reference` of further offers. */
  reference: string | undefined;

  async offer(...credentialConfigurationIds: string[]): Promise<{ uri: string; session: string }> {
    const json = {
      response_type: 'uri',
      flow: 'authorization_code',
      credentialConfigurationIds,
      ...(this.reference !== undefined && { reference: this.reference }),
    };
    const offer = await this.service.call('POST', '/issuer/offer', { token: this.token, json });
    expect(offer.status, offer.text).to.equal(201);
    return offer.body;
  }

  issueCredential(configurationId = 'card'): Promise<HeldCredential> {
    return issue(this.service, this, configurationId);
  }

  wallet(draft: DraftVariant = CURRENT_DRAFT): InteractiveWallet {
    return new InteractiveWallet(this.service, this.id, draft);
  }

  // biome-ignore lint/suspicious/noExplicitAny: sessions as they are shown
  async session(id: string): Promise<any> {
    return (await this.service.call('GET', `/session/${id}`, { token: this.token })).body;
  }
}

/** Starts an authorization that requires a visit of the customer's page. */
export async function startWebStep(issuer: Issuer, configuration = 'visitor') {
  const wallet = issuer.wallet();
  const { uri, session } = await issuer.offer(configuration);
  return { wallet, session, interaction: wallet.expectWebStep(await wallet.begin(uri, { scope: configuration })) };
}

/** The address of the customer's page in the redirect of the browser. */
export async function openCustomerPage(wallet: InteractiveWallet, interaction: RequiredInteraction): Promise<URL> {
  return new URL((await wallet.browse(interaction)).headers.get('location') ?? '');
}

/** The browser returns from the customer's page. */
export function returnFromPage(browser: Browser, page: URL, overrides = ''): Promise<BrowserResponse> {
  return browser.visit(`${page.searchParams.get('return_to')}${overrides}`);
}

export function expectError(answer: Answer, error: string): void {
  expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
}

/** Expects an error page without a redirect. */
export function expectErrorPage({ status, headers, text }: Answer | BrowserResponse): void {
  expect(status, text).to.equal(400);
  expect(headers.get('content-type')).to.match(/^text\/html/);
  expect(headers.get('location')).to.equal(null);
}
