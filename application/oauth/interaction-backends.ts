import type { Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { sessionFields } from '../../domain/sessions/session-fields.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { responseFault } from '../../domain/verification/report.ts';
import type { CredentialResult } from '../../domain/verification/verdict.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { WebhookError, Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { ResultDelivery } from '../verification/result-delivery.ts';
import { withDelivery } from '../webhooks/deliveries.ts';
import { walletInitiatedSession } from './offered-sessions.ts';

/** Lines of a report that a session keeps: several wallets may try, and each presents several times. */
const MAX_REPORT_LINES = 200;

/** What backends and operators learn of an interactive authorization. */
export class InteractionBackends extends needs({
  store: Store,
  random: Random,
  webhooks: Webhooks,
  resultDelivery: ResultDelivery,
  sessionNotes: SessionNotes,
  settings: ServiceSettings,
  log: Log,
}) {
  /**
   * A session to speak of, for a wallet that began by itself.
   * @throws Failure `not_found` when the tenant is gone or suspended.
   */
  async openSession(configured: TenantConfiguration, configurationIds: readonly string[], now: Date): Promise<Session> {
    const at = { server: configured.issuerOf('built-in') };
    const session = await walletInitiatedSession(this.ports, configured, configurationIds, now, at);
    const change = { serving: true, opens: { session } } as const;
    if ((await this.ports.store.commit(configured.tenantId, change, now)).done) return session;
    throw new Failure('not_found', 'unknown address');
  }

  /** Adds to the operator's report of the session. */
  async note(session: Session, report: readonly JsonObject[]): Promise<void> {
    await this.ports.sessionNotes.note(session, (outcome) => withReport(outcome, report));
  }

  /** Tells the presentation webhook: one attempt, on record before and after. @returns whether it took the result. */
  async deliver(
    configured: TenantConfiguration,
    session: Session,
    webhook: WebhookConfig,
    credentials: readonly CredentialResult[],
    report: readonly JsonObject[],
  ): Promise<boolean> {
    const { sessionNotes, resultDelivery } = this.ports;
    const intent = resultDelivery.intend();
    const intended = (outcome: SessionOutcome | null) => withDelivery(withReport(outcome, report), intent);
    const noted = await sessionNotes.note(session, intended);
    if (noted === undefined) return false;
    const about = { configured, session, needsAnswer: true };
    const { delivery } = await resultDelivery.call(webhook, intent, about, credentials);
    await sessionNotes.note(noted, (outcome) => withDelivery(outcome, delivery));
    return delivery.result === 'delivered';
  }

  /** Asks the customer whether the user of a page is done with it: one attempt. Any success means yes. */
  async confirm(configured: TenantConfiguration, session: Session, callbackUrl: string, pageHandle: string): Promise<boolean> {
    const { webhooks, random, log } = this.ports;
    const secret = await configured.webhookSecret();
    const options = { deliveryId: random.token(), tenantId: session.tenantId, secret, isAnswerOptional: true };
    try {
      const body = { ...sessionFields(session), auth_session: pageHandle };
      await webhooks.post({ url: callbackUrl }, body, options);
      return true;
    } catch (error) {
      if (!(error instanceof WebhookError)) throw error;
      log.warn('the web step was not confirmed', { sessionId: session.id, reason: error.reason });
      await this.note(session, [responseFault('web step', error.message, 'OpenID4VCI 1.1 section 6.2.1.2')]);
      return false;
    }
  }
}

function withReport(outcome: SessionOutcome | null, report: readonly JsonObject[]): SessionOutcome {
  return { ...outcome, report: [...(outcome?.report ?? []), ...report].slice(-MAX_REPORT_LINES) };
}
