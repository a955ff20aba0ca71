import { type Authorization, moveOn, REQUEST_URI_LIFETIME_SECONDS, REQUEST_URI_PREFIX } from '../../domain/oauth/authorization.ts';
import { hashSecret, makeHandle } from '../../domain/oauth/handle.ts';
import { type Interaction, suspend } from '../../domain/oauth/interaction.ts';
import { codeIssued, interactionRequired, sessionFailure, type WireAnswer } from '../../domain/oauth/interaction-wire.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
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
import { type Asking, InteractionPresentation } from './interaction-presentation.ts';
import { replayed } from './oauth-callers.ts';
import { isOffered } from './offered-sessions.ts';
import { ended } from './wallet-responses.ts';

/** What a request spends, with the commit that it causes. */
export type Spending = { readonly client: AuthenticatedClient; readonly used: readonly UsedValue[] };

/** A request and the authorization that it moves on. */
export type Proceeding = {
  readonly configured: TenantConfiguration;
  readonly now: Date;
  readonly authorization: Authorization;
  readonly spending: Spending;
};

type Change = Required<Pick<Authorization, 'stage' | 'handles' | 'interaction'>>;
type Asked = {
  readonly pending: NonNullable<Interaction['pending']>;
  readonly details: JsonObject;
  readonly handles: Authorization['handles'];
};

/** One intermediate request and the authorization as it is stored. */
export type InteractionRun = Proceeding & {
  readonly interaction: Interaction;
  /** Undefined for a wallet that began by itself, until a backend has to be told of it. */
  readonly session: Session | undefined;
};

/** Moves interactive authorizations on: to the next action, to a code, or out of the hands of the wallet. */
export class InteractionSteps extends needs({
  store: Store,
  random: Random,
  authorizationCodes: AuthorizationCodes,
  interactionPresentation: InteractionPresentation,
  interactionBackends: InteractionBackends,
  log: Log,
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
    const { wire } = interaction;
    const { pending, details, handles } =
      action.type === 'openid4vp_presentation'
        ? await this.#askPresentation({ configured, wire, now }, action.presentationConfigId)
        : this.#askWeb(authorization, now);
    // OAuth 2.0 for First-Party Applications section 5.3.1: 256 bits, and fresh with each answer
    const secret = this.ports.random.token(256);
    return {
      change: { stage: 'interacting', handles: { ...handles, auth_session: hashSecret(secret) }, interaction: { ...interaction, pending } },
      answer: interactionRequired(wire, pending.kind, makeHandle(id, secret), details),
    };
  }

  async #askPresentation(asking: Asking, configurationId: string): Promise<Asked> {
    const { pending, request } = await this.ports.interactionPresentation.ask(asking, configurationId);
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
   * @param interaction as it stands now; the run has the authorization as it is stored.
   * @throws Failure of the wire's session when another step was first or the offer is over.
   */
  async proceed({ configured, authorization, now, spending }: Proceeding, interaction: Interaction): Promise<WireAnswer> {
    if (interaction.actions.length > 0) {
      const { change, answer } = await this.ask(configured, authorization, interaction, now);
      await this.advance(configured, moveOn(authorization, change), spending);
      return answer;
    }
    const proceeding = { configured, authorization, now, spending };
    return codeIssued(interaction.wire, await this.finish(proceeding, interaction));
  }

  /** Ends with a code what nothing is left to ask for. @throws Failure of the wire's session as `proceed` does. */
  async finish({ configured, authorization, now, spending }: Proceeding, interaction: Interaction): Promise<string> {
    const { wire, presented } = interaction;
    const last = { ...authorization, interaction };
    const yielded = { presented, used: spending.used };
    const code = await this.ports.authorizationCodes.grant(configured, last, now, yielded);
    if (code === undefined) throw sessionFailure(wire);
    return code;
  }

  /** @throws Failure `access_denied` when the offer ended meanwhile. */
  async withOffer(run: InteractionRun): Promise<InteractionRun> {
    const { session, request } = run.authorization;
    if (session === null) return run;
    const found = (await this.ports.store.read(run.configured.tenantId).session(session.id))?.session;
    if (isOffered(found, request.credentialConfigurationIds, run.now)) return { ...run, session: found };
    throw await this.deny(run, 'the offer is over');
  }

  /**
   * Before a backend is called: of several requests with one `auth_session`, exactly one goes on. Should it stop
   * half-way, the wallet has to begin again.
   * @throws Failure of the wire's session for the others.
   */
  async claim(run: InteractionRun): Promise<InteractionRun & { readonly session: Session }> {
    const { configured, now, authorization, interaction, spending } = run;
    const claimed = moveOn(authorization, { handles: {}, interaction: suspend(interaction) });
    await this.advance(configured, claimed, spending);
    const { credentialConfigurationIds: ids } = authorization.request;
    const session = run.session ?? (await this.ports.interactionBackends.openSession(configured, ids, now));
    return {
      ...run,
      authorization: { ...claimed, session: { id: session.id, publicId: session.publicId } },
      session,
      spending: { ...spending, used: [] },
    };
  }

  /**
   * Ends it. There is one answer per request and no second try (OpenID4VP 1.0 section 14.1).
   * @param reason for the log: names, never a claim.
   * @returns what the wallet learns.
   */
  async deny(run: InteractionRun, reason: string): Promise<Failure> {
    const { configured, authorization, spending } = run;
    await this.advance(configured, ended(authorization), spending);
    const sessionId = authorization.session?.id;
    this.ports.log.warn('an interactive authorization was denied', { tenantId: configured.tenantId, sessionId, reason });
    return new Failure('access_denied', 'the authorization was denied');
  }

  /** @throws Failure of the wire's session when another step was first, or for a value that was used before. */
  async advance(configured: TenantConfiguration, next: Authorization, { client, used }: Spending): Promise<void> {
    const change = { authorization: next, uses: used };
    const advanced = await this.ports.store.commit(configured.tenantId, change, next.createdAt);
    if (advanced.done) return;
    if (advanced.part === 'uses') throw replayed(advanced.kind, client);
    throw sessionFailure(next.interaction?.wire);
  }
}
