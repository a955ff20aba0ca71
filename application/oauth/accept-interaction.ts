import { completeAction, type PendingPresentation, type PendingWebStep } from '../../domain/oauth/interaction.ts';
import type { InteractionResponse } from '../../domain/oauth/interaction-draft.ts';
import { responseFault } from '../../domain/verification/report.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { InteractionBackends } from './interaction-backends.ts';
import { InteractionPresentation } from './interaction-presentation.ts';
import { type InteractionRun, InteractionSteps } from './interaction-steps.ts';

/** Accepts the presentation of a wallet in an interactive authorization (OpenID4VCI 1.1 section 6.2.1.1). */
export class AcceptInteractionPresentation extends needs({
  interactionPresentation: InteractionPresentation,
  interactionSteps: InteractionSteps,
  interactionBackends: InteractionBackends,
}) {
  /**
   * @throws Failure `invalid_request` with nothing changed; `access_denied` after the authorization was ended. The reason is in the log
   *   and the session, not in the response.
   */
  async execute(run: InteractionRun, pending: PendingPresentation, response: string): Promise<InteractionResponse> {
    const { interactionPresentation, interactionSteps, interactionBackends } = this.ports;
    const { tenant, now, interaction } = run;
    const openedResponse = await interactionPresentation.open(pending, response);
    if (openedResponse.kind === 'wallet_error') return this.#handleWalletError(run, openedResponse.code);
    const context = { tenant, draft: interaction.draft, now };
    const verdict = await interactionPresentation.verify(context, pending, openedResponse.vpToken);
    const configuration = await tenant.presentationConfiguration(pending.configurationId);
    const webhook = configuration?.webhook ?? undefined;
    if (!verdict.good) return this.#refuse(run, verdict, webhook);
    if (webhook !== undefined) return this.#deliver(run, verdict, webhook);
    const nextInteraction = completeAction(interaction, verdict.credentials);
    const answer = await interactionSteps.proceed(run, nextInteraction);
    if (run.session !== undefined) await interactionBackends.note(run.session, verdict.report);
    return answer;
  }

  /** A presentation webhook that fails denies the authorization. */
  async #deliver(run: InteractionRun, verdict: Verdict, webhook: WebhookConfig): Promise<InteractionResponse> {
    const { interactionSteps, interactionBackends } = this.ports;
    const claimed = await interactionSteps.claim(run);
    const { credentials, report } = verdict;
    if (!(await interactionBackends.deliver(run.tenant, claimed.session, webhook, credentials, report))) {
      throw await interactionSteps.deny(claimed, 'the presentation webhook failed');
    }
    const nextInteraction = completeAction(claimed.interaction, credentials);
    return interactionSteps.proceed(claimed, nextInteraction);
  }

  async #handleWalletError(run: InteractionRun, code: string): Promise<never> {
    const { interactionSteps, interactionBackends } = this.ports;
    const denied = await interactionSteps.deny(run, code);
    const fault = responseFault('response', `the wallet answered ${code}`, 'OpenID4VP 1.0 section 8.5');
    if (run.session !== undefined) await interactionBackends.note(run.session, [fault]);
    throw denied;
  }

  /** Notifies the backend of the rejection after the authorization was ended, without claim values. */
  async #refuse(run: InteractionRun, { reasons, report, credentials }: Verdict, webhook: WebhookConfig | undefined): Promise<never> {
    const { interactionSteps, interactionBackends } = this.ports;
    const denied = await interactionSteps.deny(run, reasons.join('; '));
    if (run.session !== undefined) {
      if (webhook === undefined) await interactionBackends.note(run.session, report);
      else await interactionBackends.deliver(run.tenant, run.session, webhook, credentials, report);
    }
    throw denied;
  }
}

/**
 * Accepts the return of a user from a web page of the tenant. The return of the browser proves little, since the user can open the return
 * address directly; a tenant to which it matters configures a callback address that confirms the step.
 */
export class AcceptInteractionPage extends needs({ interactionSteps: InteractionSteps, interactionBackends: InteractionBackends }) {
  /** @throws Failure `access_denied` when the callback does not confirm; the authorization is over then. */
  async execute(run: InteractionRun, pending: PendingWebStep): Promise<InteractionResponse> {
    const nextInteraction = completeAction(run.interaction);
    return this.ports.interactionSteps.proceed(await this.#confirmed(run, pending), nextInteraction);
  }

  /**
   * Accepts the last step.
   * @returns the code.
   * @throws Failure `invalid_session` (`invalid_request` in older drafts) when a concurrent request advanced the authorization.
   */
  async finish(run: InteractionRun, pending: PendingWebStep): Promise<string> {
    const nextInteraction = completeAction(run.interaction);
    return this.ports.interactionSteps.finish(await this.#confirmed(run, pending), nextInteraction);
  }

  async #confirmed(run: InteractionRun, { pageHandle }: PendingWebStep): Promise<InteractionRun> {
    const { interactionSteps, interactionBackends } = this.ports;
    const [action] = run.interaction.actions;
    const callbackUrl = action?.type === 'redirect_to_web' ? action.callbackUrl : undefined;
    if (callbackUrl === undefined) return run;
    const claimed = await interactionSteps.claim(run);
    if (await interactionBackends.confirm(run.tenant, claimed.session, callbackUrl, pageHandle)) return claimed;
    throw await interactionSteps.deny(claimed, 'the web step was not confirmed');
  }
}
