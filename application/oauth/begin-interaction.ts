import type { AuthorizationRequest } from '../../domain/oauth/authorization-request.ts';
import { beginInteraction, kindOf, requiredActions } from '../../domain/oauth/interaction.ts';
import {
  chooseWire,
  listsWeb,
  readInteractionTypes,
  type WireAnswer,
} from '../../domain/oauth/interaction-wire.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { boundTo, findOffer, newAuthorization, readRequest } from './authorization-requests.ts';
import { InteractionSteps } from './interaction-steps.ts';
import { OAuthCallers, type OAuthRequest } from './oauth-callers.ts';
import { openAuthorization } from './pushed-requests.ts';

/** The initial request of an interactive authorization (OpenID4VCI 1.1 section 6.1.1). */
export class BeginInteraction extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  interactionSteps: InteractionSteps,
  random: Random,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `invalid_request` and the like as for a pushed request, `missing_interaction_type`, and what
   *   `OAuthCallers` throws.
   */
  async execute(tenantId: TenantId, oauth: OAuthRequest): Promise<WireAnswer> {
    const { store, tenantConfigurations, oauthCallers, interactionSteps, clock, random } = this.ports;
    const now = clock.now();
    const configured = await tenantConfigurations.serving(tenantId);
    const endpoint = 'interactive-authorization';
    const caller = await oauthCallers.identify(configured, 'built-in', endpoint, oauth, now);
    const types = readInteractionTypes(oauth.form['interaction_types_supported']);
    // OpenID4VCI 1.1 section 6.1.1: PKCE as soon as the web is an option, an address to return to only if it is taken
    const needs = { redirectUri: false, codeChallenge: listsWeb(types) };
    const request = await readRequest(this.ports, configured, oauth.form, caller, needs);
    const actions = requiredActions(
      await configured.credentialConfigurations(),
      request.credentialConfigurationIds,
    );
    const kinds = [...new Set(actions.map(kindOf))];
    const wire = chooseWire(types, kinds);
    const interaction = beginInteraction({ wire, provesKey: caller.proof !== undefined, actions });
    if (kinds.includes('web')) assertReturnable(request);
    const session = await findOffer(this.ports, configured, 'built-in', request, now);
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
}

/** OpenID4VCI 1.1 section 6.2.1.2: no other program of the device may take what the browser brings back. */
function assertReturnable({ redirectUri, codeChallenge }: AuthorizationRequest): void {
  if (redirectUri === undefined || new URL(redirectUri).protocol !== 'https:') {
    throw new Failure('invalid_request', 'the user is sent to the web, which needs an https redirect_uri');
  }
  if (codeChallenge === undefined) throw new Failure('invalid_request', 'code_challenge is missing');
}
