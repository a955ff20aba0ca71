import type { ShownConsent } from '../../../application/oauth/decide-authorization.ts';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import { readHandle } from '../../../domain/oauth/handle.ts';
import type { WireAnswer } from '../../../domain/oauth/interaction-wire.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER } from '../../support/raw-wallet.ts';
import { ACME, type Asked, type Changes, PUBLIC_URL, present, query } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { WalletWorld } from '../wallet-kit.ts';

export const PRESENTATION = 'urn:openid:dcp:ia:openid4vp_presentation';
export const WEB = 'urn:openid:dcp:ia:auth_via_web';
export const PAGE = 'https://shop.example/page?visit={auth_session}';

type Form = Readonly<Record<string, string | undefined>>;

/** What an interactive wallet was asked for. */
export type Required = {
  /** The authorization. */
  readonly id: string;
  readonly authSession: string;
  readonly request: JsonObject;
  readonly requestUri: string;
};

/**
 * An issuer of badges: `badge` for holders of a card, `told` and `sealed` the same with a webhook and with encryption,
 * `visitor` for visitors of a page, `confirmed` with a customer who is asked, `both` for one after the other.
 */
export async function interactiveWorld(): Promise<WalletWorld> {
  const world = await WalletWorld.open();
  await world.issues({ builtInAs: { walletInitiated: true } });
  const check = { dcql_query: query({ id: 'card' }), responseMode: 'direct_post' };
  await world.verifies({ ...check, id: 'check', webhook: null });
  await world.verifies({ ...check, id: 'told' });
  await world.verifies({ ...check, id: 'sealed', webhook: null, responseMode: 'direct_post.jwt' });
  const presents = (presentationConfigId: string) => ({
    type: 'openid4vp_presentation',
    presentationConfigId,
  });
  const page = { type: 'redirect_to_web', url: PAGE };
  await world.offers({ id: 'badge', iaeActions: [presents('check')] });
  await world.offers({ id: 'told', iaeActions: [presents('told')] });
  await world.offers({ id: 'sealed', iaeActions: [presents('sealed')] });
  await world.offers({ id: 'visitor', iaeActions: [page] });
  await world.offers({ id: 'both', iaeActions: [presents('check'), page] });
  await world.offers({ id: 'tour', iaeActions: [page, { ...page, url: `${PAGE}&second=1` }] });
  const callbackUrl = 'https://shop.example/done';
  await world.offers({ id: 'confirmed', iaeActions: [{ ...page, callbackUrl }] });
  return world;
}

/** A wallet that goes through interactive authorizations step by step. */
export class InteractiveWallet extends Wallet {
  /** What its browser was given to keep. */
  readonly browserSecrets = new Map<string, string>();

  post(form: Form, more: Partial<OAuthRequest> = {}): Promise<WireAnswer> {
    const sent = Object.entries(form).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const request = this.oauth('interactive-authorization', Object.fromEntries(sent), more);
    return this.world.interactiveAuthorization.execute(this.tenantId, request);
  }

  begin(scope: string, form: Form = {}, more: Partial<OAuthRequest> = {}): Promise<WireAnswer> {
    const types = `${PRESENTATION},${WEB}`;
    return this.post({ ...AUTHORIZATION_REQUEST, scope, interaction_types_supported: types, ...form }, more);
  }

  /** Begins and reads what is asked for. */
  async asked(scope: string, form: Form = {}): Promise<Required> {
    return required(await this.begin(scope, form));
  }

  /** For an offer, so that there is a session to look at. */
  async offered(scope: string) {
    const ids = { credentialConfigurationIds: [scope] };
    const { session } = await anOffer(this.world, { flow: 'authorization_code', ...ids });
    return { ...(await this.asked(scope, { issuer_state: session.publicId })), session: session.id };
  }

  /** Answers with the present `auth_session`. */
  goOn({ authSession }: Pick<Required, 'authSession'>, form: Form = {}, more: Partial<OAuthRequest> = {}) {
    return this.post({ auth_session: authSession, code_verifier: CODE_VERIFIER, ...form }, more);
  }

  /** What is presented, right in every respect that `changes` does not touch. */
  vpToken({ request }: Pick<Required, 'request'>, changes: Changes = {}): JsonObject {
    const to = { clientId: `ia:${PUBLIC_URL}`, nonce: request['nonce'] };
    return { card: [present(this.world, { request: to } as unknown as Asked, changes)] };
  }

  presenting(asked: Required, changes: Changes = {}): Promise<WireAnswer> {
    const response = JSON.stringify({ vp_token: this.vpToken(asked, changes) });
    return this.goOn(asked, { openid4vp_response: response });
  }

  /** The browser opens the address that the wallet was given, and its user approves; then it is at the page. */
  async visit({ id, requestUri }: Required): Promise<URL> {
    const { world, tenantId } = this;
    const browser = { clientId: AUTHORIZATION_REQUEST.client_id, requestUri };
    const shown = (await world.showAuthorization.execute(tenantId, browser)) as ShownConsent;
    this.browserSecrets.set(id, shown.keep?.browserSecret ?? '');
    const { decision_token: decisionToken } = shown.fields;
    const { browserSecrets } = this;
    const answer = { ...browser, decision: 'approve', decisionToken, browserSecrets };
    const sent = await world.decideAuthorization.execute(tenantId, answer);
    if (!('keep' in sent)) throw new Error('no page');
    this.browserSecrets.set(id, sent.keep.browserSecret);
    return new URL(sent.location);
  }

  /** The browser comes back from the page. @returns what it brings to the wallet. */
  async comeBack(page: URL): Promise<{ readonly authSession: string; readonly sent: URLSearchParams }> {
    const pageHandle = page.searchParams.get('visit') ?? '';
    const { browserSecrets } = this;
    const returned = { pageHandle, error: undefined, browserSecrets };
    const { location } = await this.world.returnToInteraction.execute(this.tenantId, returned);
    const { searchParams: sent } = new URL(location);
    return { authSession: sent.get('auth_session') ?? '', sent };
  }

  async stored({ id }: Pick<Required, 'id'>): Promise<Authorization | undefined> {
    return (await this.world.store.read(ACME).authorization(id))?.authorization;
  }
}

export function required({ body }: WireAnswer): Required {
  const authSession = String(body['auth_session']);
  return {
    id: readHandle(authSession)?.id ?? '',
    authSession,
    request: (body['openid4vp_request'] ?? {}) as JsonObject,
    requestUri: String(body['request_uri'] ?? ''),
  };
}

/** The code that ends an interactive authorization well. */
export function codeOf({ body }: WireAnswer): string {
  const { authorization_code: code, ...others } = body;
  if (typeof code !== 'string' || Object.keys(others).length > 0) throw new Error('this is no code');
  return code;
}
