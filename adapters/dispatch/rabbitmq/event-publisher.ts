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

/** Events wait for an answer however long it takes, but after so long the log says so. */
const PATIENCE_MS = 30_000;

/** What a kind of session is called outside. */
const KINDS = { issuance: 'issuance', verification: 'presentation' } as const;

/** Hands events to all whose queues are bound to the exchange, as CloudEvents 1.0 in structured mode. */
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
    return this.#patiently(async (channel) => {
      const taken = await Promise.all(
        notices.map((notice) => {
          const key = `${notice.tenantId}.${KINDS[notice.kind]}.${notice.status}`;
          return this.#publish(channel, this.#eventOf(notice), key, notice.at);
        }),
      );
      const refused = taken.indexOf(false);
      return refused === -1 ? notices.length : refused;
    });
  }

  override publishRevocation(notice: RevocationNotice): Promise<boolean> {
    const { tenantId, sessionId, batchId, credentialConfigurationId, at } = notice;
    const event = new CloudEvent({
      id: `${sessionId}.${batchId}.revoked`,
      source: issuerIdentifier({ publicUrl: this.#publicUrl }, tenantId),
      type: 'vidimus.credentials.revoked',
      subject: sessionId,
      time: at.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId, sessionId, credentialConfigurationId, reason: 'wallet_revoked' },
    });
    return this.#patiently((channel) => this.#publish(channel, event, `${tenantId}.issuance.revoked`, at));
  }

  async #patiently<T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
    const channel = this.#channel;
    if (channel === undefined) throw new Error('the broker is not connected');
    const timer = setTimeout(() => this.#warn(), PATIENCE_MS);
    try {
      return await work(channel);
    } finally {
      clearTimeout(timer);
    }
  }

  override async tellHeldList({ key, ...notice }: HeldListNotice): Promise<boolean> {
    const { tenantId, listId, list, reason, signer, at } = notice;
    const event = new CloudEvent({
      id: `${listId}.${hash('sha256', `${key} ${at.getTime()}`, 'base64url').slice(0, 22)}`,
      source: issuerIdentifier({ publicUrl: this.#publicUrl }, tenantId),
      type: 'vidimus.trust-list.held',
      subject: listId,
      time: at.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId, listId, list, reason, ...(signer !== undefined && { signer }) },
    });
    return this.#patiently((channel) => this.#publish(channel, event, `${tenantId}.trust-list.held`, at));
  }

  #warn(): void {
    this.#log.warn('the broker does not say that it has the events; a queue may have no majority, or there is an alarm');
  }

  async #setUp(model: ChannelModel): Promise<void> {
    const channel = await openConfirmChannel(model);
    channel.on('close', () => {
      if (this.#channel === channel) this.#channel = undefined;
    });
    await channel.assertExchange(EVENTS_EXCHANGE, 'topic', { durable: true });
    this.#channel = channel;
  }

  /** @returns false when a queue that wanted it did not take it. */
  #publish(channel: ConfirmChannel, event: CloudEvent<unknown>, key: string, at: Date): Promise<boolean> {
    const properties = {
      persistent: true,
      messageId: event.id,
      type: event.type,
      timestamp: Math.floor(at.getTime() / 1000),
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

  #eventOf({ tenantId, sessionId, kind, version, status, at }: SessionNotice) {
    return new CloudEvent({
      id: `${sessionId}.${version}`,
      source: issuerIdentifier({ publicUrl: this.#publicUrl }, tenantId),
      type: `vidimus.session.${status}`,
      subject: sessionId,
      time: at.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId, sessionId, kind: KINDS[kind], status, version },
    });
  }
}
