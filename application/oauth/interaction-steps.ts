import { type Authorization, advance, REQUEST_URI_LIFETIME_SECONDS, REQUEST_URI_PREFIX } from '../../domain/oauth/authorization.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import { createHandle, hashSecret } from '../../domain/oauth/handle.ts';
import { type Interaction, withoutPending } from '../../domain/oauth/interaction.ts';
import { codeResponse, type InteractionResponse, interactionResponse, sessionFailure } from '../../domain/oauth/interaction-draft.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import type { AuthenticatedClient } from './client-authenticator.ts';
import { InteractionBackends } from './interaction-backends.ts';
import { InteractionPresentation, type PresentationContext } from './interaction-presentation.ts';
import { replayError } from './oauth-callers.ts';
import { isOffered } from './offered-sessions.ts';
import { endAuthorization } from './wallet-responses.ts';

/** The values that the commit of a request consumes. */
export type ConsumedByRequest = { readonly client: AuthenticatedClient; readonly used: readonly ConsumedValue[] };

/** A request and the authorization that it advances. */
export type InteractionStep = {
  readonly tenant: TenantConfiguration;
  readonly now: Date;
  readonly authorization: Authorization;
  readonly consumed: ConsumedByRequest;
};

type Change = Required<Pick<Authorization, 'stage' | 'handles' | 'interaction'>>;
type RequestedStep = {
  readonly pending: NonNullable<Interaction['pending']>;
  readonly details: JsonObject;
  readonly handles: Authorization['handles'];
};

/** One intermediate request and the stored authorization. */
export type InteractionRun = InteractionStep & {
  readonly interaction: Interaction;
  /** Undefined for a wallet-initiated authorization, until a backend has to be notified. */
  readonly session: Session | undefined;
};

/** Advances interactive authorizations: to the next action, to a code, or to a denial. */
export class InteractionSteps extends needs({
  store: Store,
  random: Random,
  authorizationCodes: AuthorizationCodes,
  interactionPresentation: InteractionPresentation,
  interactionBackends: InteractionBackends,
  log: Log,
}) {
  /**
   * Creates the request for the first remaining action. Nothing is stored yet.
   * @throws Failure `unavailable` when it cannot be created.
   */
  async requestStep(
    tenant: TenantConfiguration,
    authorization: Authorization,
    interaction: Interaction,
    now: Date,
  ): Promise<{ readonly change: Change; readonly answer: InteractionResponse }> {
    const [action] = interaction.actions;
    if (action === undefined) throw new Error('the interaction has no remaining action');
    const { id } = authorization;
    const { draft } = interaction;
    const { pending, details, handles } =
      action.type === 'openid4vp_presentation'
        ? await this.#requestPresentation({ tenant, draft, now }, action.presentationConfigId)
        : this.#requestWebStep(authorization, now);
    // OAuth 2.0 for First-Party Applications section 5.3.1: 256 bits, and fresh with each answer
    const secret = this.ports.random.token(256);
    return {
      change: { stage: 'interacting', handles: { ...handles, auth_session: hashSecret(secret) }, interaction: { ...interaction, pending } },
      answer: interactionResponse(draft, pending.kind, createHandle(id, secret), details),
    };
  }

  async #requestPresentation(context: PresentationContext, configurationId: string): Promise<RequestedStep> {
    const { pending, request } = await this.ports.interactionPresentation.createRequest(context, configurationId);
    return { pending, details: { openid4vp_request: request }, handles: {} };
  }

  #requestWebStep({ id, expiresAt }: Authorization, now: Date): RequestedStep {
    const { random } = this.ports;
    const [requestSecret, pageSecret] = [random.token(256), random.token(256)];
    const pageHandle = createHandle(id, pageSecret);
    return {
      pending: { kind: 'web', since: now, until: expiresAt, pageHandle, hasReturned: false },
      details: { request_uri: REQUEST_URI_PREFIX + createHandle(id, requestSecret), expires_in: REQUEST_URI_LIFETIME_SECONDS },
      handles: { request_uri: hashSecret(requestSecret), page: hashSecret(pageSecret) },
    };
  }

  /**
   * Requests the next remaining action, or ends with a code.
   * @param interaction state after this request; `authorization` has the stored state.
   * @throws Failure `invalid_session` (`invalid_request` in older drafts) when a concurrent request advanced the authorization or the
   *   offer has ended.
   */
  async proceed({ tenant, authorization, now, consumed }: InteractionStep, interaction: Interaction): Promise<InteractionResponse> {
    if (interaction.actions.length > 0) {
      const { change, answer } = await this.requestStep(tenant, authorization, interaction, now);
      await this.commitAdvance(tenant, advance(authorization, change), consumed);
      return answer;
    }
    const step = { tenant, authorization, now, consumed };
    return codeResponse(interaction.draft, await this.finish(step, interaction));
  }

  /** Issues the code after the last action. @throws Failure `invalid_session` (`invalid_request` in older drafts) as `proceed` does. */
  async finish({ tenant, authorization, now, consumed }: InteractionStep, interaction: Interaction): Promise<string> {
    const { draft, presented } = interaction;
    const finalAuthorization = { ...authorization, interaction };
    const results = { presented, used: consumed.used };
    const code = await this.ports.authorizationCodes.grant(tenant, finalAuthorization, now, results);
    if (code === undefined) throw sessionFailure(draft);
    return code;
  }

  /** @throws Failure `access_denied` when the offer ended meanwhile. */
  async withOffer(run: InteractionRun): Promise<InteractionRun> {
    const { session, request } = run.authorization;
    if (session === null) return run;
    const offerSession = (await this.ports.store.read(run.tenant.tenantId).session(session.id))?.session;
    if (isOffered(offerSession, request.credentialConfigurationIds, run.now)) return { ...run, session: offerSession };
    throw await this.deny(run, 'the offer has ended');
  }

  /**
   * Claims the authorization before a backend is called: of several requests with one `auth_session`, exactly one continues. If it
   * fails half-way, the wallet has to begin again.
   * @throws Failure `invalid_session` (`invalid_request` in older drafts) for the requests that lost the race.
   */
  async claim(run: InteractionRun): Promise<InteractionRun & { readonly session: Session }> {
    const { tenant, now, authorization, interaction, consumed } = run;
    const claimed = advance(authorization, { handles: {}, interaction: withoutPending(interaction) });
    await this.commitAdvance(tenant, claimed, consumed);
    const { credentialConfigurationIds: ids } = authorization.request;
    const session = run.session ?? (await this.ports.interactionBackends.openSession(tenant, ids, now));
    return {
      ...run,
      authorization: { ...claimed, session: { id: session.id, publicId: session.publicId } },
      session,
      consumed: { ...consumed, used: [] },
    };
  }

  /**
   * Denies the authorization. Each request has one response and no second try (OpenID4VP 1.0 section 14.1).
   * @param reason for the log: names, never a claim.
   * @returns the failure for the wallet.
   */
  async deny(run: InteractionRun, reason: string): Promise<Failure> {
    const { tenant, authorization, consumed } = run;
    await this.commitAdvance(tenant, endAuthorization(authorization), consumed);
    const sessionId = authorization.session?.id;
    this.ports.log.warn('an interactive authorization was denied', { tenantId: tenant.tenantId, sessionId, reason });
    return new Failure('access_denied', 'the authorization was denied');
  }

  /**
   * @throws Failure `invalid_session` (`invalid_request` in older drafts) when a concurrent request advanced the authorization; the error of
   *   `replayError` if a value was already consumed.
   */
  async commitAdvance(tenant: TenantConfiguration, nextAuthorization: Authorization, { client, used }: ConsumedByRequest): Promise<void> {
    const change = { authorization: nextAuthorization, uses: used };
    const committed = await this.ports.store.commit(tenant.tenantId, change, nextAuthorization.createdAt);
    if (committed.done) return;
    if (committed.part === 'uses') throw replayError(committed.kind, client);
    throw sessionFailure(nextAuthorization.interaction?.draft);
  }
}
