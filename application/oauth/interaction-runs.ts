import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { type Interaction, suspend } from '../../domain/oauth/interaction.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { InteractionBackends } from './interaction-backends.ts';
import { InteractionSteps, type Spending } from './interaction-steps.ts';

/** One intermediate request and the authorization as it is stored. */
export type InteractionRun = {
  readonly configured: TenantConfiguration;
  readonly now: Date;
  readonly authorization: Authorization;
  readonly interaction: Interaction;
  /** Undefined for a wallet that began by itself, until a backend has to be told of it. */
  readonly session: Session | undefined;
  readonly spending: Spending;
};

/** Takes interactive authorizations out of the hands of wallets: for a moment, or for good. */
export class InteractionRuns extends needs({
  interactionSteps: InteractionSteps,
  interactionBackends: InteractionBackends,
  log: Log,
}) {
  /**
   * Before a backend is called: of several requests with one `auth_session`, exactly one goes on. Should it stop
   * half-way, the wallet has to begin again.
   * @throws Failure of the wire's session for the others.
   */
  async claim(run: InteractionRun): Promise<InteractionRun & { readonly session: Session }> {
    const { interactionSteps, interactionBackends } = this.ports;
    const { configured, now, authorization, interaction, spending } = run;
    const claimed = moveOn(authorization, { handles: {}, interaction: suspend(interaction) });
    await interactionSteps.advance(configured, claimed, spending);
    const { credentialConfigurationIds: ids } = authorization.request;
    const session = run.session ?? (await interactionBackends.openSession(configured, ids, now));
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
    const { configured, authorization, interaction, spending } = run;
    const done = moveOn(authorization, { stage: 'done', handles: {}, interaction: suspend(interaction) });
    await this.ports.interactionSteps.advance(configured, done, spending);
    const sessionId = authorization.session?.id;
    this.ports.log.warn('an interactive authorization was denied', {
      tenantId: configured.tenantId,
      sessionId,
      reason,
    });
    return new Failure('access_denied', 'the authorization was denied');
  }
}
