import { type Authorization, isCurrent } from '../../domain/oauth/authorization.ts';
import type { AuthorizationRequest } from '../../domain/oauth/authorization-request.ts';
import { beginInteraction, kindOf, parseAnswer, requiredActions } from '../../domain/oauth/interaction.ts';
import { chooseWire, listsWeb, parseInteractionTypes, sessionFailure, type WireAnswer } from '../../domain/oauth/interaction-wire.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { AcceptInteractionPage, AcceptInteractionPresentation } from './accept-interaction.ts';
import { boundTo, findOffer, newAuthorization, parseRequest } from './authorization-requests.ts';
import { type InteractionRun, InteractionSteps } from './interaction-steps.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest } from './oauth-callers.ts';
import { authorizationOf, openAuthorization } from './pushed-requests.ts';

/** The initial request of an interactive authorization (OpenID4VCI 1.1 section 6.1.1). */
export class BeginInteraction extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  interactionSteps: InteractionSteps,
  random: Random,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `invalid_request` and the like as for a pushed request, `missing_interaction_type`,
   *   `redirect_to_web`, and what `OAuthCallers` throws.
   */
  async execute(tenantId: TenantId, oauth: OAuthRequest): Promise<WireAnswer> {
    const { store, tenantConfigurations, oauthCallers, interactionSteps, clock, random } = this.ports;
    const now = clock.now();
    const configured = await tenantConfigurations.serving(tenantId);
    const endpoint = 'interactive-authorization';
    const caller = await oauthCallers.identify(configured, 'built-in', endpoint, oauth, now);
    const { interaction_types_supported: listed } = oauth.form;
    if (listed === undefined) await this.#leadToWeb(configured, oauth.form, caller);
    const types = parseInteractionTypes(listed);
    // OpenID4VCI 1.1 section 6.1.1: PKCE as soon as the web is an option, an address to return to only if it is taken
    const needs = { redirectUri: false, codeChallenge: listsWeb(types) };
    const initial = await parseRequest(this.ports, configured, oauth.form, caller, needs);
    const { request } = initial;
    const actions = requiredActions(await configured.credentialConfigurations(), request.credentialConfigurationIds);
    const kinds = [...new Set(actions.map(kindOf))];
    const wire = chooseWire(types, kinds);
    const interaction = beginInteraction({ wire, provesKey: caller.proof !== undefined, actions });
    if (kinds.includes('web')) assertReturnable(request);
    const session = await findOffer(this.ports, configured, 'built-in', initial, now);
    const authorization = newAuthorization(random, now, {
      server: 'built-in',
      stage: 'interacting',
      request,
      holder: boundTo(caller, oauth.form['dpop_jkt']),
      session,
      handles: {},
      interaction,
    });
    if (actions.length === 0) {
      await openAuthorization(store, tenantId, authorization, caller, clock.now());
      const spending = { client: caller.client, used: [] };
      return interactionSteps.proceed({ configured, authorization, now, spending }, interaction);
    }
    const { change, answer } = await interactionSteps.ask(configured, authorization, interaction, now);
    await openAuthorization(store, tenantId, { ...authorization, ...change }, caller, clock.now());
    return answer;
  }

  /**
   * Wallets that know this endpoint from OAuth 2.0 for First-Party Applications ask here first, whatever they ask for.
   * They are told to go on at the authorization endpoint (section 5.2.2.1 there) where that leads to a code.
   * @throws Failure `redirect_to_web`, and what is wrong with the request.
   */
  async #leadToWeb(configured: TenantConfiguration, form: OAuthRequest['form'], caller: OAuthCaller): Promise<void> {
    // Such a request needs no response_type.
    const asked = { response_type: 'code', ...form };
    const needs = { redirectUri: false, codeChallenge: false };
    const { request } = await parseRequest(this.ports, configured, asked, caller, needs);
    const actions = requiredActions(await configured.credentialConfigurations(), request.credentialConfigurationIds);
    if (actions.length === 0) throw new Failure('redirect_to_web', 'go on at the authorization endpoint');
  }
}

/** OpenID4VCI 1.1 section 6.2.1.2: no other program of the device may take what the browser brings back. */
function assertReturnable({ redirectUri, codeChallenge }: AuthorizationRequest): void {
  if (redirectUri === undefined || new URL(redirectUri).protocol !== 'https:') {
    throw new Failure('invalid_request', 'the user is sent to the web, which needs an https redirect_uri');
  }
  if (codeChallenge === undefined) throw new Failure('invalid_request', 'code_challenge is missing');
}

/** An intermediate request of an interactive authorization (OpenID4VCI 1.1 section 6.2). */
export class ContinueInteraction extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  interactionSteps: InteractionSteps,
  acceptInteractionPresentation: AcceptInteractionPresentation,
  acceptInteractionPage: AcceptInteractionPage,
}) {
  /**
   * @throws Failure `invalid_session` (by the wire also `invalid_request`), `invalid_request` and `invalid_grant` with
   *   nothing changed, `access_denied` with the authorization over, and what `OAuthCallers` throws.
   */
  async execute(tenantId: TenantId, authSession: string, oauth: OAuthRequest): Promise<WireAnswer> {
    const { acceptInteractionPresentation, acceptInteractionPage } = this.ports;
    const run = await this.#find(tenantId, authSession, oauth);
    const { pending } = run.interaction;
    if (pending === undefined) throw sessionFailure(run.interaction.wire);
    const answer = parseAnswer(pending, oauth.form, run.authorization.request.codeChallenge);
    const offered = await this.ports.interactionSteps.withOffer(run);
    return answer.kind === 'web'
      ? acceptInteractionPage.execute(offered, answer.pending)
      : acceptInteractionPresentation.execute(offered, answer.pending, answer.response);
  }

  /** @throws Failure of the wire's session unless `auth_session` is the present one, of this wallet and in time. */
  async #find(tenantId: TenantId, authSession: string, oauth: OAuthRequest): Promise<InteractionRun> {
    const { oauthCallers, clock } = this.ports;
    const now = clock.now();
    const { configured, authorization } = await authorizationOf(this.ports, tenantId, authSession);
    const endpoint = 'interactive-authorization';
    const caller = await oauthCallers.identify(configured, 'built-in', endpoint, oauth, now);
    const interaction = authorization?.interaction;
    const isOpen =
      isCurrent(authorization, 'auth_session', authSession, now) &&
      interaction?.pending !== undefined &&
      interaction.pending.until > now &&
      isSameHolder(authorization, caller);
    if (!isOpen) throw sessionFailure(interaction?.wire);
    const spending = { client: caller.client, used: caller.used };
    return { configured, now, authorization, interaction, session: undefined, spending };
  }
}

/**
 * The request that began it binds those that follow (OpenID4VCI 1.1 section 6.2.1.4). A wallet that proves nothing of
 * itself need not repeat its name: `auth_session` stands for it (OAuth 2.0 for First-Party Applications section 5.1).
 */
function isSameHolder({ holder, interaction }: Authorization, caller: OAuthCaller): boolean {
  const { clientId, authenticated, instance, keyThumbprint } = holderOf(caller);
  const isNameless = clientId === undefined && holder.authenticated !== true;
  const isKeyOptional = interaction?.provesKey !== true && keyThumbprint === undefined;
  return (
    (isNameless || clientId === holder.clientId) &&
    authenticated === holder.authenticated &&
    instance === holder.instance &&
    (holder.keyThumbprint === undefined || isKeyOptional || keyThumbprint === holder.keyThumbprint)
  );
}

/**
 * The interactive authorization endpoint of the built-in server, which later drafts call the authorization challenge
 * endpoint (OpenID4VCI 1.1 section 6).
 */
export class InteractiveAuthorization extends needs({ beginInteraction: BeginInteraction, continueInteraction: ContinueInteraction }) {
  /** @throws Failure as `BeginInteraction` and `ContinueInteraction` do. */
  async execute(tenantId: TenantId, oauth: OAuthRequest): Promise<WireAnswer> {
    const { beginInteraction, continueInteraction } = this.ports;
    const authSession = oauth.form['auth_session'];
    return authSession === undefined
      ? beginInteraction.execute(tenantId, oauth)
      : continueInteraction.execute(tenantId, authSession, oauth);
  }
}
