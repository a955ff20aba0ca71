import { completeAction, type PendingPresentation, type PendingWebStep } from '../../domain/oauth/interaction.ts';
import type { WireAnswer } from '../../domain/oauth/interaction-wire.ts';
import { responseFault } from '../../domain/verification/report.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { InteractionBackends } from './interaction-backends.ts';
import { InteractionPresentation } from './interaction-presentation.ts';
import { type InteractionRun, InteractionSteps } from './interaction-steps.ts';

/** What a wallet presents before it gets a credential (OpenID4VCI 1.1 section 6.2.1.1). */
export class AcceptInteractionPresentation extends needs({
  interactionPresentation: InteractionPresentation,
  interactionSteps: InteractionSteps,
  interactionBackends: InteractionBackends,
}) {
  /**
   * @throws Failure `invalid_request` with nothing changed; `access_denied`, and then the authorization is over. The
   *   wallet learns no reason; log and session have it.
   */
  async execute(run: InteractionRun, pending: PendingPresentation, response: string): Promise<WireAnswer> {
    const { interactionPresentation, interactionSteps, interactionBackends } = this.ports;
    const { configured, now, interaction } = run;
    const opened = await interactionPresentation.open(pending, response);
    if (opened.kind === 'wallet_error') return this.#hearError(run, opened.code);
    const asking = { configured, wire: interaction.wire, now };
    const verdict = await interactionPresentation.verify(asking, pending, opened.vpToken);
    const configuration = await configured.presentationConfiguration(pending.configurationId);
    const webhook = configuration?.webhook ?? undefined;
    if (!verdict.good) return this.#refuse(run, verdict, webhook);
    if (webhook !== undefined) return this.#deliver(run, verdict, webhook);
    const next = completeAction(interaction, verdict.credentials);
    const answer = await interactionSteps.proceed(run, next);
    if (run.session !== undefined) await interactionBackends.note(run.session, verdict.report);
    return answer;
  }

  /** A backend that is told of presentations has to take them. */
  async #deliver(run: InteractionRun, verdict: Verdict, webhook: WebhookConfig): Promise<WireAnswer> {
    const { interactionSteps, interactionBackends } = this.ports;
    const claimed = await interactionSteps.claim(run);
    const { credentials, report } = verdict;
    if (!(await interactionBackends.deliver(run.configured, claimed.session, webhook, credentials, report))) {
      throw await interactionSteps.deny(claimed, 'the presentation webhook failed');
    }
    const next = completeAction(claimed.interaction, credentials);
    return interactionSteps.proceed(claimed, next);
  }

  async #hearError(run: InteractionRun, code: string): Promise<never> {
    const { interactionSteps, interactionBackends } = this.ports;
    const denied = await interactionSteps.deny(run, code);
    const fault = responseFault('response', `the wallet answered ${code}`, 'OpenID4VP 1.0 section 8.5');
    if (run.session !== undefined) await interactionBackends.note(run.session, [fault]);
    throw denied;
  }

  /** The backend hears of it once it is over, without any value. */
  async #refuse(run: InteractionRun, { reasons, report, credentials }: Verdict, webhook: WebhookConfig | undefined): Promise<never> {
    const { interactionSteps, interactionBackends } = this.ports;
    const denied = await interactionSteps.deny(run, reasons.join('; '));
    if (run.session !== undefined) {
      if (webhook === undefined) await interactionBackends.note(run.session, report);
      else await interactionBackends.deliver(run.configured, run.session, webhook, credentials, report);
    }
    throw denied;
  }
}

/**
 * A wallet goes on after its user was at a page of the customer. That the browser came back proves little, since the
 * user can go where the page would send them; so a customer to whom it matters names an address that is asked.
 */
export class AcceptInteractionPage extends needs({ interactionSteps: InteractionSteps, interactionBackends: InteractionBackends }) {
  /** @throws Failure `access_denied` when the customer does not confirm; the authorization is over then. */
  async execute(run: InteractionRun, pending: PendingWebStep): Promise<WireAnswer> {
    const next = completeAction(run.interaction);
    return this.ports.interactionSteps.proceed(await this.#confirmed(run, pending), next);
  }

  /** The same for the last step. @returns the code. @throws Failure also of the wire's session, when another was first. */
  async finish(run: InteractionRun, pending: PendingWebStep): Promise<string> {
    const next = completeAction(run.interaction);
    return this.ports.interactionSteps.finish(await this.#confirmed(run, pending), next);
  }

  async #confirmed(run: InteractionRun, { pageHandle }: PendingWebStep): Promise<InteractionRun> {
    const { interactionSteps, interactionBackends } = this.ports;
    const [action] = run.interaction.actions;
    const callbackUrl = action?.type === 'redirect_to_web' ? action.callbackUrl : undefined;
    if (callbackUrl === undefined) return run;
    const claimed = await interactionSteps.claim(run);
    if (await interactionBackends.confirm(run.configured, claimed.session, callbackUrl, pageHandle)) return claimed;
    throw await interactionSteps.deny(claimed, 'the web step was not confirmed');
  }
}
