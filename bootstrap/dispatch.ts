import { InProcessEventBus } from '../adapters/dispatch/in-process/event-bus.ts';
import type { EventBus } from '../application/ports/event-bus.ts';
import type { EventPublisher } from '../application/ports/event-publisher.ts';
import type { Log } from '../application/ports/log.ts';
import type { Probe } from '../application/ports/probe.ts';
import type { WorkQueue } from '../application/ports/work-queue.ts';
import type { Settings } from '../config/settings.ts';

export type Dispatch = {
  readonly eventBus: EventBus;
  /** Undefined where the process that holds the lease of a job does all of it. */
  readonly workQueue: WorkQueue | undefined;
  /** Undefined where nobody is told of events. */
  readonly eventPublisher: EventPublisher | undefined;
  /** What it says is a warning: the service goes on without the broker. */
  readonly probe: Probe | undefined;
  close(): Promise<void>;
};

/**
 * Within this process, or by the broker, which is called in the background.
 * @throws Error when `AMQP_CA` cannot be read.
 */
export async function openDispatch(
  { AMQP_URL: address, AMQP_CA: ca, PUBLIC_URL: publicUrl }: Settings,
  log: Log,
): Promise<Dispatch> {
  if (address === undefined) {
    return {
      eventBus: new InProcessEventBus(),
      workQueue: undefined,
      eventPublisher: undefined,
      probe: undefined,
      close: () => Promise.resolve(),
    };
  }
  // Loaded when it is wanted.
  const { RabbitConnection } = await import('../adapters/dispatch/rabbitmq/connection.ts');
  const { RabbitEventBus } = await import('../adapters/dispatch/rabbitmq/event-bus.ts');
  const { RabbitEventPublisher } = await import('../adapters/dispatch/rabbitmq/event-publisher.ts');
  const { RabbitWorkQueue } = await import('../adapters/dispatch/rabbitmq/work-queue.ts');
  const connection = new RabbitConnection({ address, ca }, log);
  const dispatch = {
    eventBus: new RabbitEventBus(connection, log),
    workQueue: new RabbitWorkQueue(connection, log),
    eventPublisher: new RabbitEventPublisher(connection, { publicUrl }),
    probe: { name: 'broker', check: () => connection.check() },
    close: () => connection.close(),
  };
  await connection.open();
  return dispatch;
}
