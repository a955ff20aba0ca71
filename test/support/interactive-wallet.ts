import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, importJWK } from 'jose';
import { Browser, type Visit } from './chained-wallet.ts';
import type { Held } from './present.ts';
import {
  AUTHORIZATION_REQUEST,
  CLIENT_ID,
  CODE_VERIFIER,
  dpopProof,
  type HolderKey,
  makeJwt,
  now,
  RawWallet,
} from './raw-wallet.ts';
import type { Answer, TestService } from './test-service.ts';

/** The names of the draft by the three forms that it had. */
export type Wire = {
  readonly name: string;
  readonly presentation: string;
  readonly web: string;
  readonly responseMode: string;
  readonly prefix: string;
  readonly required: { readonly status: number; readonly type: string; readonly rest: object };
  readonly codeMember: string;
  readonly done: object;
  readonly sessionError: string;
};

const EARLIER = {
  responseMode: 'iae_post',
  prefix: 'iae:',
  required: { status: 200, type: 'type', rest: { status: 'require_interaction' } },
  codeMember: 'code',
  done: { status: 'ok' },
  sessionError: 'invalid_request',
} as const;
export const CURRENT: Wire = {
  name: 'the current text',
  presentation: 'urn:openid:dcp:ia:openid4vp_presentation',
  web: 'urn:openid:dcp:ia:auth_via_web',
  responseMode: 'ia_post',
  prefix: 'ia:',
  required: {
    status: 401,
    type: 'interaction_type_required',
    rest: { error: 'insufficient_authorization' },
  },
  codeMember: 'authorization_code',
  done: {},
  sessionError: 'invalid_session',
};
export const WIRES: readonly Wire[] = [
  CURRENT,
  {
    ...EARLIER,
    name: 'the draft of spring 2026',
    presentation: 'urn:openid:dcp:iae:openid4vp_presentation',
    web: 'urn:openid:dcp:iae:redirect_to_web',
  },
  { ...EARLIER, name: 'the first drafts', presentation: 'openid4vp_presentation', web: 'redirect_to_web' },
];

type Form = Readonly<Record<string, string>>;

/** What a wallet was asked for. */
export type Required = {
  readonly authSession: string;
  // biome-ignore lint/suspicious/noExplicitAny: requests of every shape
  readonly request: any;
  readonly requestUri: string;
};

/** A wallet that goes through interactive authorizations step by step. */
export class InteractiveWallet extends RawWallet {
  readonly wire: Wire;
  /** Of the user who holds the wallet. */
  readonly browser = new Browser();

  constructor(service: TestService, tenant: string, wire: Wire = CURRENT) {
    super(service, tenant);
    this.wire = wire;
  }

  get endpoint(): string {
    return `${this.issuer}/interactive-authorization`;
  }

  /** An empty value leaves a parameter out. */
  post(form: Form, headers: Record<string, string> = {}): Promise<Answer> {
    const sent = Object.entries(form).filter(([, value]) => value !== '');
    return this.service.call('POST', this.endpoint, { form: Object.fromEntries(sent), headers });
  }

  /** For the offer behind a link, if there is one. */
  async begin(
    uri: string | undefined,
    form: Form = {},
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const types = `${this.wire.web}, ${this.wire.presentation}`;
    const all = { ...AUTHORIZATION_REQUEST, interaction_types_supported: types, ...form };
    if (uri === undefined) return this.post(all, headers);
    const { grants } = (await this.offer(uri)) as {
      grants: { authorization_code: { issuer_state: string } };
    };
    return this.post({ issuer_state: grants.authorization_code.issuer_state, ...all }, headers);
  }

  /** Reads the answer that asks for something first. */
  required(answer: Answer, type: string): Required {
    const { status, type: member, rest } = this.wire.required;
    expect(answer.status, answer.text).to.equal(status);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const { auth_session, openid4vp_request, request_uri, expires_in, ...others } = answer.body;
    expect(others).to.deep.equal({ ...rest, [member]: type });
    expect(auth_session).to.match(/^[\w-]+\.[\w-]{43}$/);
    if (type === this.wire.presentation)
      expect([request_uri, expires_in]).to.deep.equal([undefined, undefined]);
    else expect([openid4vp_request, expires_in]).to.deep.equal([undefined, 60]);
    return { authSession: auth_session, request: openid4vp_request, requestUri: request_uri };
  }

  asksPresentation(answer: Answer): Required {
    return this.required(answer, this.wire.presentation);
  }

  asksWeb(answer: Answer): Required {
    return this.required(answer, this.wire.web);
  }

  /** Reads the answer with the code. */
  issuedCode(answer: Answer): string {
    expect(answer.status, answer.text).to.equal(200);
    const { [this.wire.codeMember]: code, ...others } = answer.body;
    expect(others).to.deep.equal(this.wire.done);
    return code;
  }

  get audience(): string {
    return this.wire.prefix + new URL(this.service.address).origin;
  }

  /** A presentation of `held`, right in every respect that `bend` does not touch. */
  bind(required: Required, held: Held, bend: Record<string, unknown> = {}): string {
    const payload = {
      iat: now(),
      aud: this.audience,
      nonce: required.request.nonce,
      sd_hash: createHash('sha256').update(held.text).digest('base64url'),
      ...bend,
    };
    return held.text + makeJwt(held.holder, { alg: 'ES256', typ: 'kb+jwt' }, payload);
  }

  present(required: Required, held: Held, bend: Record<string, unknown> = {}): Promise<Answer> {
    return this.respond(required, { vp_token: { card: [this.bind(required, held, bend)] } });
  }

  respond(
    { authSession }: Required,
    response: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const text = typeof response === 'string' ? response : JSON.stringify(response);
    return this.post({ auth_session: authSession, openid4vp_response: text }, headers);
  }

  /** Opens the browser at the authorization endpoint. */
  open({ requestUri }: Required, clientId = CLIENT_ID, browser = this.browser): Promise<Visit> {
    const query = new URLSearchParams({ client_id: clientId, request_uri: requestUri });
    return browser.visit(`${this.service.address}/${this.tenant}/authorize?${query}`);
  }

  /** The same, and approves the wallet when asked. @returns where the browser is sent. */
  async browse(required: Required, clientId = CLIENT_ID, browser = this.browser): Promise<Visit> {
    const shown = await this.open(required, clientId, browser);
    return shown.status === 200 ? browser.press(shown, 'approve') : shown;
  }

  /** Goes to the customer's page and back. @returns what the browser brings to the wallet. */
  async visit(required: Required): Promise<{ page: URL; back: URL }> {
    const sent = await this.browse(required);
    expect(sent.status, sent.text).to.equal(303);
    const { location: page } = sent;
    if (page === undefined) throw new Error('no page to go to');
    const returned = await this.browser.visit(page.searchParams.get('return_to') ?? '');
    expect(returned.status, returned.text).to.equal(302);
    return { page, back: new URL(returned.headers.get('location') ?? '') };
  }

  /** The code that the browser brings after the last step. */
  codeFrom(back: URL | undefined): string {
    const { code = '', ...others } = Object.fromEntries(back?.searchParams ?? []);
    expect(others).to.deep.equal({ keep: 'this', state: 'state of the wallet', iss: this.issuer });
    expect(code).to.match(/^[\w-]{43}$/);
    return code;
  }

  /** Goes on after the browser came back. */
  resume(back: URL, verifier = CODE_VERIFIER): Promise<Answer> {
    return this.post({
      auth_session: back.searchParams.get('auth_session') ?? '',
      code_verifier: verifier,
    });
  }

  proof(key: HolderKey = this.dpopKey): Record<string, string> {
    return { DPoP: dpopProof(key, this.endpoint) };
  }
}

/** Encrypts a response to the key of the request. */
export async function encryptFor({ request }: Required, plaintext: unknown): Promise<string> {
  const [jwk] = request.client_metadata.jwks.keys;
  return new CompactEncrypt(Buffer.from(JSON.stringify(plaintext)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk.kid })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}
