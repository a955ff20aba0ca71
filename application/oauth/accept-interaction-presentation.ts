import { completeAction, type PendingPresentation } from '../../domain/oauth/interaction.ts';
import type { WireAnswer } from '../../domain/oauth/interaction-wire.ts';
import type { WebhookConfigValue } from '../../domain/sessions/session.ts';
import { responseFault } from '../../domain/verification/report.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { InteractionBackends } from './interaction-backends.ts';
import { InteractionPresentation } from './interaction-presentation.ts';
import { type InteractionRun, InteractionRuns } from './interaction-runs.ts';
import { InteractionSteps, interactionEndpoint } from './interaction-steps.ts';

/** What a wallet presents before it gets a credential (OpenID4VCI 1.1 section 6.2.1.1). */
export class AcceptInteractionPresentation extends needs({
  interactionPresentation: InteractionPresentation,
  interactionSteps: InteractionSteps,
  interactionRuns: InteractionRuns,
  interactionBackends: InteractionBackends,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `invalid_request` with nothing changed; `access_denied`, and then the authorization is over. The
   *   wallet learns no reason; log and session have it.
   */
  async execute(run: InteractionRun, pending: PendingPresentation, response: string): Promise<WireAnswer> {
    const { interactionPresentation, interactionSteps, interactionBackends, settings } = this.ports;
    const { configured, now, authorization, interaction, spending } = run;
    const opened = await interactionPresentation.open(pending, response);
    if (opened.kind === 'wallet_error') return this.#hearError(run, opened.code);
    const endpoint = interactionEndpoint(settings, configured.tenantId);
    const asking = { wire: interaction.wire, endpoint, now };
    const verdict = await interactionPresentation.judge(configured, pending, opened.vpToken, asking);
    const configuration = await configured.presentationConfiguration(pending.configurationId);
    const webhook = configuration?.webhook ?? undefined;
    if (!verdict.good) return this.#refuse(run, verdict, webhook);
    if (webhook !== undefined) return this.#deliver(run, verdict, webhook);
    const next = completeAction(interaction, verdict.credentials);
    const answer = await interactionSteps.proceed(configured, authorization, next, now, spending);
    if (run.session !== undefined) await interactionBackends.note(run.session, verdict.report);
    return answer;
  }

  /** A backend that is told of presentations has to take them. */
  async #deliver(run: InteractionRun, verdict: Verdict, webhook: WebhookConfigValue): Promise<WireAnswer> {
    const { interactionSteps, interactionRuns, interactionBackends } = this.ports;
    const claimed = await interactionRuns.claim(run);
    const { configured, now, authorization, interaction, session, spending } = claimed;
    const { credentials, report } = verdict;
    if (!(await interactionBackends.deliver(session, webhook, credentials, report))) {
      throw await interactionRuns.deny(claimed, 'the presentation webhook failed');
    }
    const next = completeAction(interaction, credentials);
    return interactionSteps.proceed(configured, authorization, next, now, spending);
  }

  async #hearError(run: InteractionRun, code: string): Promise<never> {
    const { interactionRuns, interactionBackends } = this.ports;
    const denied = await interactionRuns.deny(run, code);
    const fault = responseFault('response', `the wallet answered ${code}`, 'OpenID4VP 1.0 section 8.5');
    if (run.session !== undefined) await interactionBackends.note(run.session, [fault]);
    throw denied;
  }

  /** The backend hears of it once it is over, without any value. */
  async #refuse(
    run: InteractionRun,
    { reasons, report, credentials }: Verdict,
    webhook: WebhookConfigValue | undefined,
  ): Promise<never> {
    const { interactionRuns, interactionBackends } = this.ports;
    const denied = await interactionRuns.deny(run, reasons.join('; '));
    if (run.session !== undefined) {
      if (webhook === undefined) await interactionBackends.note(run.session, report);
      else await interactionBackends.deliver(run.session, webhook, credentials, report);
    }
    throw denied;
  }
}
