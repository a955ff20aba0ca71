import { hash } from 'node:crypto';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { CloudEvent } from 'cloudevents';
import {
  EventPublisher,
  type HeldListNotice,
  type RevocationNotice,
  type SessionNotice,
} from '../../../application/ports/event-publisher.ts';
import type { Log } from '../../../application/ports/log.ts';
import { issuerIdentifier } from '../../../application/ports/settings.ts';
import { openConfirmChannel, type RabbitConnection } from './connection.ts';

export const EVENTS_EXCHANGE = 'vidimus.events';

/** Events wait for a confirmation without limit, but after this time the log reports it. */
const WARNING_AFTER_MS = 30_000;

/** Public names of the kinds of sessions. */
const KINDS = { issuance: 'issuance', verification: 'presentation' } as const;

/** Publishes events to all queues that are bound to the exchange, as CloudEvents 1.0 in structured mode. */
export class RabbitEventPublisher extends EventPublisher {
  readonly #connection: RabbitConnection;
  readonly #publicUrl: string;
  readonly #log: Log;
  #channel: ConfirmChannel | undefined;

  constructor(connection: RabbitConnection, settings: { readonly publicUrl: string }, log: Log) {
    super();
    this.#connection = connection;
    this.#log = log;
    this.#publicUrl = settings.publicUrl;
    connection.add({ setUp: (model) => this.#setUp(model) });
  }

  override get isReady(): boolean {
    return this.#channel !== undefined && this.#connection.isWritable;
  }

  override onReady(listener: () => void): () => void {
    return this.#connection.onWritable(listener);
  }

  override publish(notices: readonly SessionNotice[]): Promise<number> {
    return this.#withWarning(async (channel) => {
      const confirmed = await Promise.all(
        notices.map((notice) => {
          const key = `${notice.tenantId}.${KINDS[notice.kind]}.${notice.status}`;
          return this.#publish(channel, this.#eventOf(notice), key, notice.at);
        }),
      );
      const firstRejected = confirmed.indexOf(false);
      return firstRejected === -1 ? notices.length : firstRejected;
    });
  }

  override publishRevocation(notice: RevocationNotice): Promise<boolean> {
    const { tenantId, sessionId, batchId, credentialConfigurationId, at: timestamp } = notice;
    const event = new CloudEvent({
      id: `${sessionId}.${batchId}.revoked`,
      source: issuerIdentifier({ publicUrl: this.#publicUrl }, tenantId),
      type: 'vidimus.credentials.revoked',
      subject: sessionId,
      time: timestamp.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId, sessionId, credentialConfigurationId, reason: 'wallet_revoked' },
    });
    return this.#withWarning((channel) => this.#publish(channel, event, `${tenantId}.issuance.revoked`, timestamp));
  }

  async #withWarning<T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
    const channel = this.#channel;
    if (channel === undefined) throw new Error('the broker is not connected');
    const timer = setTimeout(() => this.#warn(), WARNING_AFTER_MS);
    try {
      return await work(channel);
    } finally {
      clearTimeout(timer);
    }
  }

  override async publishHeldList({ key, ...notice }: HeldListNotice): Promise<boolean> {
    const { tenantId, listId, list, reason, signer, at: timestamp } = notice;
    const event = new CloudEvent({
      id: `${listId}.${hash('sha256', `${key} ${timestamp.getTime()}`, 'base64url').slice(0, 22)}`,
      source: issuerIdentifier({ publicUrl: this.#publicUrl }, tenantId),
      type: 'vidimus.trust-list.held',
      subject: listId,
      time: timestamp.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId, listId, list, reason, ...(signer !== undefined && { signer }) },
    });
    return this.#withWarning((channel) => this.#publish(channel, event, `${tenantId}.trust-list.held`, timestamp));
  }

  #warn(): void {
    this.#log.warn('the broker does not confirm the events; a queue may have no majority, or there is an alarm');
  }

  async #setUp(model: ChannelModel): Promise<void> {
    const channel = await openConfirmChannel(model);
    channel.on('close', () => {
      if (this.#channel === channel) this.#channel = undefined;
    });
    await channel.assertExchange(EVENTS_EXCHANGE, 'topic', { durable: true });
    this.#channel = channel;
  }

  /** @returns false if a bound queue rejected the event. */
  #publish(channel: ConfirmChannel, event: CloudEvent<unknown>, key: string, timestamp: Date): Promise<boolean> {
    const properties = {
      persistent: true,
      messageId: event.id,
      type: event.type,
      timestamp: Math.floor(timestamp.getTime() / 1000),
      contentType: 'application/cloudevents+json',
      contentEncoding: 'utf-8',
      appId: 'vidimus',
    };
    return new Promise((resolve, reject) => {
      const content = Buffer.from(JSON.stringify(event));
      channel.publish(EVENTS_EXCHANGE, key, content, properties, (error: Error | null) => {
        if (error === null) resolve(true);
        else if (error.message === 'message nacked') resolve(false);
        else reject(error);
      });
    });
  }

  #eventOf({ tenantId, sessionId, kind, version, status, at: timestamp }: SessionNotice) {
    return new CloudEvent({
      id: `${sessionId}.${version}`,
      source: issuerIdentifier({ publicUrl: this.#publicUrl }, tenantId),
      type: `vidimus.session.${status}`,
      subject: sessionId,
      time: timestamp.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId, sessionId, kind: KINDS[kind], status, version },
    });
  }
}
