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

/** Report lines that a session stores: several wallets may try, and each presents several times. */
const MAX_REPORT_LINES = 200;

/** Notifies backends and operators about an interactive authorization. */
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
   * Opens a session for a wallet-initiated authorization, so that there is one to report about.
   * @throws Failure `not_found` when the tenant was removed or suspended.
   */
  async openSession(tenant: TenantConfiguration, configurationIds: readonly string[], now: Date): Promise<Session> {
    const options = { server: tenant.issuerOf('built-in') };
    const session = await walletInitiatedSession(this.ports, tenant, configurationIds, now, options);
    const change = { serving: true, opens: { session } } as const;
    if ((await this.ports.store.commit(tenant.tenantId, change, now)).done) return session;
    throw new Failure('not_found', 'unknown address');
  }

  /** Adds to the operator's report of the session. */
  async note(session: Session, report: readonly JsonObject[]): Promise<void> {
    await this.ports.sessionNotes.note(session, (outcome) => withReport(outcome, report));
  }

  /** Calls the presentation webhook once; recorded before and after. @returns true if it accepted the result. */
  async deliver(
    tenant: TenantConfiguration,
    session: Session,
    webhook: WebhookConfig,
    credentials: readonly CredentialResult[],
    report: readonly JsonObject[],
  ): Promise<boolean> {
    const { sessionNotes, resultDelivery } = this.ports;
    const intent = resultDelivery.intend();
    const withIntent = (outcome: SessionOutcome | null) => withDelivery(withReport(outcome, report), intent);
    const notedSession = await sessionNotes.note(session, withIntent);
    if (notedSession === undefined) return false;
    const context = { tenant, session, needsAnswer: true };
    const { delivery } = await resultDelivery.call(webhook, intent, context, credentials);
    await sessionNotes.note(notedSession, (outcome) => withDelivery(outcome, delivery));
    return delivery.result === 'delivered';
  }

  /** Asks the tenant's backend to confirm that the user completed the page: one attempt. Any success is a confirmation. */
  async confirm(tenant: TenantConfiguration, session: Session, callbackUrl: string, pageHandle: string): Promise<boolean> {
    const { webhooks, random, log } = this.ports;
    const secret = await tenant.webhookSecret();
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
