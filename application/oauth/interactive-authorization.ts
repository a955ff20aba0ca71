import { type Authorization, isCurrentHandle } from '../../domain/oauth/authorization.ts';
import type { AuthorizationRequest } from '../../domain/oauth/authorization-request.ts';
import { kindOf, parseAnswer, requiredActions, startInteraction } from '../../domain/oauth/interaction.ts';
import {
  chooseDraft,
  type InteractionResponse,
  parseInteractionTypes,
  sessionFailure,
  supportsWeb,
} from '../../domain/oauth/interaction-draft.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { AcceptInteractionPage, AcceptInteractionPresentation } from './accept-interaction.ts';
import { boundTo, findOffer, newAuthorization, parseRequest } from './authorization-requests.ts';
import { type InteractionRun, InteractionSteps } from './interaction-steps.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest } from './oauth-callers.ts';
import { authorizationOf, openAuthorization } from './pushed-requests.ts';

/** The initial request of an interactive authorization (OpenID4VCI 1.1 section 6.1.1). */
export class BeginInteraction extends needs({
  ...TRANSACTION_PORTS,
  oauthCallers: OAuthCallers,
  interactionSteps: InteractionSteps,
  random: Random,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `invalid_request` and others as for a pushed request, `missing_interaction_type`,
   *   `redirect_to_web`, and the failures of `OAuthCallers`.
   */
  async execute(tenantId: TenantId, oauth: OAuthRequest): Promise<InteractionResponse> {
    const { store, tenantConfigurations, oauthCallers, interactionSteps, clock, random } = this.ports;
    const now = clock.now();
    const tenant = await tenantConfigurations.readServing(tenantId);
    const endpoint = 'interactive-authorization';
    const caller = await oauthCallers.identify(tenant, 'built-in', endpoint, oauth, now);
    const { interaction_types_supported: interactionTypes } = oauth.form;
    if (interactionTypes === undefined) await this.#redirectToWeb(tenant, oauth.form, caller);
    const types = parseInteractionTypes(interactionTypes);
    // OpenID4VCI 1.1 section 6.1.1: PKCE if the web is an option, a redirect URI only if it is used
    const needs = { redirectUri: false, codeChallenge: supportsWeb(types) };
    const initial = await parseRequest(this.ports, tenant, oauth.form, caller, needs);
    const { request } = initial;
    const actions = requiredActions(await tenant.credentialConfigurations(), request.credentialConfigurationIds);
    const kinds = [...new Set(actions.map(kindOf))];
    const draft = chooseDraft(types, kinds);
    const interaction = startInteraction({ draft, provesKey: caller.proof !== undefined, actions });
    if (kinds.includes('web')) assertReturnable(request);
    const session = await findOffer(this.ports, tenant, 'built-in', initial, now);
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
      const consumed = { client: caller.client, used: [] };
      return interactionSteps.proceed({ tenant, authorization, now, consumed }, interaction);
    }
    const { change, answer } = await interactionSteps.requestStep(tenant, authorization, interaction, now);
    await openAuthorization(store, tenantId, { ...authorization, ...change }, caller, clock.now());
    return answer;
  }

  /**
   * Wallets that implement OAuth 2.0 for First-Party Applications call this endpoint first in any case. They are directed to the
   * authorization endpoint (section 5.2.2.1 there) if that leads to a code.
   * @throws Failure `redirect_to_web`, and the problems of the request.
   */
  async #redirectToWeb(tenant: TenantConfiguration, form: OAuthRequest['form'], caller: OAuthCaller): Promise<void> {
    // Such a request needs no response_type.
    const parameters = { response_type: 'code', ...form };
    const needs = { redirectUri: false, codeChallenge: false };
    const { request } = await parseRequest(this.ports, tenant, parameters, caller, needs);
    const actions = requiredActions(await tenant.credentialConfigurations(), request.credentialConfigurationIds);
    if (actions.length === 0) throw new Failure('redirect_to_web', 'continue at the authorization endpoint');
  }
}

/** OpenID4VCI 1.1 section 6.2.1.2: no other app on the device may receive what the browser brings back. */
function assertReturnable({ redirectUri, codeChallenge }: AuthorizationRequest): void {
  if (redirectUri === undefined || new URL(redirectUri).protocol !== 'https:') {
    throw new Failure('invalid_request', 'the user is redirected to a web page, which requires an https redirect_uri');
  }
  if (codeChallenge === undefined) throw new Failure('invalid_request', 'code_challenge is missing');
}

/** An intermediate request of an interactive authorization (OpenID4VCI 1.1 section 6.2). */
export class ContinueInteraction extends needs({
  ...TRANSACTION_PORTS,
  oauthCallers: OAuthCallers,
  interactionSteps: InteractionSteps,
  acceptInteractionPresentation: AcceptInteractionPresentation,
  acceptInteractionPage: AcceptInteractionPage,
}) {
  /**
   * @throws Failure `invalid_session` (`invalid_request` in older drafts), `invalid_request` and `invalid_grant` with
   *   nothing changed, `access_denied` after the authorization was ended, and the failures of `OAuthCallers`.
   */
  async execute(tenantId: TenantId, authSession: string, oauth: OAuthRequest): Promise<InteractionResponse> {
    const { acceptInteractionPresentation, acceptInteractionPage } = this.ports;
    const run = await this.#find(tenantId, authSession, oauth);
    const { pending } = run.interaction;
    if (pending === undefined) throw sessionFailure(run.interaction.draft);
    const answer = parseAnswer(pending, oauth.form, run.authorization.request.codeChallenge);
    const runWithOffer = await this.ports.interactionSteps.withOffer(run);
    return answer.kind === 'web'
      ? acceptInteractionPage.execute(runWithOffer, answer.pending)
      : acceptInteractionPresentation.execute(runWithOffer, answer.pending, answer.response);
  }

  /**
   * @throws Failure `invalid_session` (`invalid_request` in older drafts) unless `auth_session` is current, of this wallet and not
   *   expired.
   */
  async #find(tenantId: TenantId, authSession: string, oauth: OAuthRequest): Promise<InteractionRun> {
    const { oauthCallers, clock } = this.ports;
    const now = clock.now();
    const { tenant, authorization } = await authorizationOf(this.ports, tenantId, authSession);
    const endpoint = 'interactive-authorization';
    const caller = await oauthCallers.identify(tenant, 'built-in', endpoint, oauth, now);
    const interaction = authorization?.interaction;
    const isOpen =
      isCurrentHandle(authorization, 'auth_session', authSession, now) &&
      interaction?.pending !== undefined &&
      interaction.pending.until > now &&
      isSameHolder(authorization, caller);
    if (!isOpen) throw sessionFailure(interaction?.draft);
    const consumed = { client: caller.client, used: caller.used };
    return { tenant, now, authorization, interaction, session: undefined, consumed };
  }
}

/**
 * Later requests are bound to the holder of the first one (OpenID4VCI 1.1 section 6.2.1.4). An unauthenticated wallet need not
 * repeat its client_id: `auth_session` replaces it (OAuth 2.0 for First-Party Applications section 5.1).
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
 * The interactive authorization endpoint of the built-in server, called authorization challenge endpoint in later drafts
 * (OpenID4VCI 1.1 section 6).
 */
export class InteractiveAuthorization extends needs({ beginInteraction: BeginInteraction, continueInteraction: ContinueInteraction }) {
  async execute(tenantId: TenantId, oauth: OAuthRequest): Promise<InteractionResponse> {
    const { beginInteraction, continueInteraction } = this.ports;
    const authSession = oauth.form['auth_session'];
    return authSession === undefined
      ? beginInteraction.execute(tenantId, oauth)
      : continueInteraction.execute(tenantId, authSession, oauth);
  }
}
