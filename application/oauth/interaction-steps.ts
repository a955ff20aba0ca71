import {
  type Authorization,
  moveOn,
  REQUEST_URI_LIFETIME_SECONDS,
  REQUEST_URI_PREFIX,
} from '../../domain/oauth/authorization.ts';
import { hashSecret, makeHandle } from '../../domain/oauth/handle.ts';
import type { Interaction } from '../../domain/oauth/interaction.ts';
import {
  codeIssued,
  interactionRequired,
  sessionFailure,
  type WireAnswer,
} from '../../domain/oauth/interaction-wire.ts';
import type { InteractiveAction } from '../../domain/oauth/interactive-action.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import type { AuthenticatedClient } from './client-authenticator.ts';
import { InteractionPresentation } from './interaction-presentation.ts';
import { replayed } from './oauth-callers.ts';

/** What a request spends, with the commit that it causes. */
export type Spending = { readonly client: AuthenticatedClient; readonly used: readonly UsedValue[] };

type Change = Required<Pick<Authorization, 'stage' | 'handles' | 'interaction'>>;
type Asked = {
  readonly pending: NonNullable<Interaction['pending']>;
  readonly details: JsonObject;
  readonly handles: Authorization['handles'];
};

/** Where wallets post to; the endpoint is below the issuer of the built-in server. */
export function interactionEndpoint(settings: ServiceSettings, tenantId: TenantId): string {
  return `${issuerIdentifier(settings, tenantId)}/interactive-authorization`;
}

/** Moves interactive authorizations on: to the next action, or to a code. */
export class InteractionSteps extends needs({
  store: Store,
  random: Random,
  authorizationCodes: AuthorizationCodes,
  interactionPresentation: InteractionPresentation,
  settings: ServiceSettings,
}) {
  /**
   * Asks for the first action that is left. Nothing is stored yet.
   * @throws Failure `unavailable` when it cannot be asked for.
   */
  async ask(
    configured: TenantConfiguration,
    authorization: Authorization,
    interaction: Interaction,
    now: Date,
  ): Promise<{ readonly change: Change; readonly answer: WireAnswer }> {
    const [action] = interaction.actions;
    if (action === undefined) throw new Error('nothing is left to ask for');
    const { id } = authorization;
    const { pending, details, handles } =
      action.type === 'openid4vp_presentation'
        ? await this.#askPresentation(configured, interaction, action, now)
        : this.#askWeb(authorization, now);
    // OAuth 2.0 for First-Party Applications section 5.3.1: 256 bits, and fresh with each answer
    const secret = this.ports.random.token(256);
    return {
      change: {
        stage: 'interacting',
        handles: { ...handles, auth_session: hashSecret(secret) },
        interaction: { ...interaction, pending },
      },
      answer: interactionRequired(interaction.wire, pending.kind, makeHandle(id, secret), details),
    };
  }

  async #askPresentation(
    configured: TenantConfiguration,
    { wire }: Interaction,
    { presentationConfigId }: Extract<InteractiveAction, { type: 'openid4vp_presentation' }>,
    now: Date,
  ): Promise<Asked> {
    const { interactionPresentation, settings } = this.ports;
    const endpoint = interactionEndpoint(settings, configured.tenantId);
    const asking = { wire, endpoint, now };
    const { pending, request } = await interactionPresentation.ask(configured, presentationConfigId, asking);
    return { pending, details: { openid4vp_request: request }, handles: {} };
  }

  #askWeb({ id, expiresAt }: Authorization, now: Date): Asked {
    const { random } = this.ports;
    const [requestSecret, pageSecret] = [random.token(256), random.token(256)];
    const pageHandle = makeHandle(id, pageSecret);
    return {
      pending: { kind: 'web', since: now, until: expiresAt, pageHandle, isReturned: false },
      details: {
        request_uri: REQUEST_URI_PREFIX + makeHandle(id, requestSecret),
        expires_in: REQUEST_URI_LIFETIME_SECONDS,
      },
      handles: { request_uri: hashSecret(requestSecret), page: hashSecret(pageSecret) },
    };
  }

  /**
   * Asks for what is left, or ends with a code.
   * @param interaction as it stands now; `authorization` as it is stored.
   * @throws Failure of the wire's session when another step was first or the offer is over.
   */
  async proceed(
    configured: TenantConfiguration,
    authorization: Authorization,
    interaction: Interaction,
    now: Date,
    spending: Spending,
  ): Promise<WireAnswer> {
    if (interaction.actions.length > 0) {
      const { change, answer } = await this.ask(configured, authorization, interaction, now);
      await this.advance(configured, moveOn(authorization, change), spending);
      return answer;
    }
    const { wire, presented } = interaction;
    const last = { ...authorization, interaction };
    const yielded = { presented, used: spending.used };
    const code = await this.ports.authorizationCodes.grant(configured, last, now, yielded);
    if (code === undefined) throw sessionFailure(wire);
    return codeIssued(wire, code);
  }

  /** @throws Failure of the wire's session when another step was first, or for a value that was used before. */
  async advance(
    configured: TenantConfiguration,
    next: Authorization,
    { client, used }: Spending,
  ): Promise<void> {
    const { store } = this.ports;
    const change = { authorization: next, uses: used };
    const advanced = await store.commit(configured.tenantId, change, next.createdAt);
    if (advanced.done) return;
    if (advanced.part === 'uses') throw replayed(advanced.kind, client);
    throw sessionFailure(next.interaction?.wire);
  }
}
