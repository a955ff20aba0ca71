import type { GrantChange } from '../../domain/oauth/grant.ts';
import { type Delivery, OPEN_STATUSES, type Session, type SessionOutcome, statusAt } from '../../domain/sessions/session.ts';
import { failed } from '../../domain/sessions/session-change.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { deliver, intend, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfOutcome } from '../webhooks/outcome-webhook.ts';

/** Why nothing can come of an offer any more, for its operator. */
export const BURNT = {
  tx_code_attempts: 'the transaction code was wrong five times',
  refresh_token_replayed: 'a refresh token came back after it was used, so its tokens were revoked',
  code_replayed: 'the authorization code came back after it was used, so its tokens were revoked',
} as const;
type Reason = keyof typeof BURNT;

/** Others that write to the same session meanwhile. */
const MAX_ATTEMPTS = 10;

/** A call of a backend that has yet to be made. */
type Told = { readonly webhook: WebhookConfig; readonly configurationId: string; readonly intent: Delivery };

/** Whether a wallet began the session by itself, so that nobody else can come with its offer. */
export function isWithoutOffer({ request }: Session): boolean {
  return request?.kind === 'issuance' && request.offerUrl === '';
}

/** Fails the sessions of offers that were burnt, together with what burnt them. */
export class BurntOffers extends needs({
  ...WORLD,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  random: Random,
  log: Log,
}) {
  /**
   * Applies the change of the grant and fails its session, unless that is over: both, or none. Then backends are told.
   * @param isBurnt whether that session can bring nothing any more.
   * @returns whether the grant was changed; not, where it was not as expected.
   */
  async burn(
    known: Known,
    grant: GrantChange,
    publicId: PublicId,
    reason: Reason,
    isBurnt: (session: Session) => boolean = () => true,
  ): Promise<boolean> {
    const { store, tenantConfigurations, clock } = this.ports;
    // Whatever comes of the request: nothing of it is tried again.
    known.hasCommitted = true;
    for (let left = MAX_ATTEMPTS; left > 0; left--) {
      const session = (await known.reads.sessionByPublicId(publicId))?.session;
      const now = clock.now();
      const isOpen = session !== undefined && OPEN_STATUSES.includes(statusAt(session, now));
      if (!isOpen || !isBurnt(session)) break;
      const told = await this.#told(known, session);
      const failure = { code: reason, message: BURNT[reason] };
      const intents = told.map(({ intent }) => intent);
      const outcome = withDeliveries({ ...session.outcome, failure }, intents);
      const change = { grant, session: failed(session, outcome) };
      const committed = await store.commit(known.tenantId, change, now);
      if (committed.done) {
        tenantConfigurations.committed(known.tenantId, change, committed);
        tenantConfigurations.remembered.forgetGrant(known.tenantId, grant.id);
        await this.#tell(known, { ...session, outcome, ...committed.session }, told, BURNT[reason]);
        return true;
      }
      if (committed.part !== 'session') return false;
    }
    const { done } = await store.commit(known.tenantId, { grant }, clock.now());
    tenantConfigurations.remembered.forgetGrant(known.tenantId, grant.id);
    return done;
  }

  /** Who hears of it: for each credential of the offer its webhook, if there is one. */
  async #told({ configured }: Known, session: Session): Promise<readonly Told[]> {
    const all = await Promise.all(
      session.configurationIds.map(async (configurationId) => {
        const webhook = await webhookOfOutcome(configured, session, configurationId);
        if (webhook === undefined) return [];
        return [{ webhook, configurationId, intent: intend(this.ports, 'notification') }];
      }),
    );
    return all.flat();
  }

  async #tell({ configured }: Known, session: Session, told: readonly Told[], eventDescription: string): Promise<void> {
    const about = { configured, session };
    const deliveries = await Promise.all(
      told.map(async ({ webhook, configurationId: credentialConfigurationId, intent }) => {
        // Nothing was handed out, so there is no id under which a wallet would report: the delivery names it.
        const { id } = intent;
        const notification = { id, event: 'credential_failure', credentialConfigurationId, eventDescription };
        return (await deliver(this.ports, webhook, intent, { notification }, about)).delivery;
      }),
    );
    if (deliveries.length === 0) return;
    await this.ports.sessionNotes.note(session, (outcome) => withDeliveries(outcome, deliveries));
  }
}

function withDeliveries(outcome: SessionOutcome | null, deliveries: readonly Delivery[]): SessionOutcome {
  return deliveries.reduce<SessionOutcome>((next, delivery) => withDelivery(next, delivery), outcome ?? {});
}
