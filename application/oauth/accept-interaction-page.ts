import { completeAction, type PendingWebStep } from '../../domain/oauth/interaction.ts';
import type { WireAnswer } from '../../domain/oauth/interaction-wire.ts';
import { needs } from '../needs.ts';
import { InteractionBackends } from './interaction-backends.ts';
import { type InteractionRun, InteractionRuns } from './interaction-runs.ts';
import { InteractionSteps } from './interaction-steps.ts';

/**
 * A wallet goes on after its user was at a page of the customer. That the browser came back proves little, since the
 * user can go where the page would send them; so a customer to whom it matters names an address that is asked.
 */
export class AcceptInteractionPage extends needs({
  interactionSteps: InteractionSteps,
  interactionRuns: InteractionRuns,
  interactionBackends: InteractionBackends,
}) {
  /** @throws Failure `access_denied` when the customer does not confirm; the authorization is over then. */
  async execute(run: InteractionRun, { pageHandle }: PendingWebStep): Promise<WireAnswer> {
    const { interactionSteps, interactionRuns, interactionBackends } = this.ports;
    const next = completeAction(run.interaction);
    const [action] = run.interaction.actions;
    const callbackUrl = action?.type === 'redirect_to_web' ? action.callbackUrl : undefined;
    if (callbackUrl === undefined) {
      return interactionSteps.proceed(run.configured, run.authorization, next, run.now, run.spending);
    }
    const claimed = await interactionRuns.claim(run);
    if (!(await interactionBackends.confirm(claimed.session, callbackUrl, pageHandle))) {
      throw await interactionRuns.deny(claimed, 'the web step was not confirmed');
    }
    return interactionSteps.proceed(
      claimed.configured,
      claimed.authorization,
      next,
      claimed.now,
      claimed.spending,
    );
  }
}
