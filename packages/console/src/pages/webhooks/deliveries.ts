import type { DeliveryRecord } from '../sessions/session-record.ts';

export type SessionRead = { readonly id: string; readonly deliveries?: readonly DeliveryRecord[] };
export type Delivery = DeliveryRecord & { readonly session: string };
export type Rate = {
  readonly webhook: DeliveryRecord['webhook'];
  readonly delivered: number;
  readonly pending: number;
  readonly failed: number;
};

/** All deliveries, the newest first. */
export function deliveriesOf(sessions: readonly SessionRead[]): Delivery[] {
  return sessions
    .flatMap(({ id, deliveries = [] }) => deliveries.map((delivery) => ({ ...delivery, session: id })))
    .sort((delivery, otherDelivery) => otherDelivery.at.localeCompare(delivery.at));
}

/** The same sessions after one delivery was made again. */
export function withDelivery(sessions: readonly SessionRead[], session: string, now: DeliveryRecord): SessionRead[] {
  return sessions.map(({ id, deliveries = [] }) => ({
    id,
    deliveries: id === session ? deliveries.map((delivery) => (delivery.id === now.id ? now : delivery)) : deliveries,
  }));
}

export function ratesOf(deliveries: readonly DeliveryRecord[]): Rate[] {
  const webhooks = [...new Set(deliveries.map(({ webhook }) => webhook))].sort();
  return webhooks.map((webhook) => {
    const count = (wanted: DeliveryRecord['result']) =>
      deliveries.filter((delivery) => delivery.webhook === webhook && delivery.result === wanted).length;
    return { webhook, delivered: count('delivered'), pending: count('pending'), failed: count('failed') };
  });
}

export function shareOf({ delivered, failed }: Rate): string {
  const ended = delivered + failed;
  return ended === 0 ? 'none has ended' : `${Math.floor((delivered / ended) * 100)} % delivered`;
}
