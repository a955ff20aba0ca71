import type { ChannelModel, ConsumeMessage } from 'amqplib';
import { expect } from 'chai';
import { CloudEvent } from 'cloudevents';
import { RabbitConnection } from '../../adapters/dispatch/rabbitmq/connection.ts';
import { RabbitEventBus, WAKE_EXCHANGE } from '../../adapters/dispatch/rabbitmq/event-bus.ts';
import { EVENTS_EXCHANGE, RabbitEventPublisher } from '../../adapters/dispatch/rabbitmq/event-publisher.ts';
import { RabbitWorkQueue, WORK_QUEUE } from '../../adapters/dispatch/rabbitmq/work-queue.ts';
import type { WakeUp } from '../../application/ports/event-bus.ts';
import type { SessionNotice } from '../../application/ports/event-publisher.ts';
import { Log, type LogFields } from '../../application/ports/log.ts';
import type { BackgroundTask } from '../../application/ports/work-queue.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { type CuttingProxy, cuttingProxy } from '../support/proxies.ts';
import { type RabbitMq, startRabbitMq, waitUntil } from '../support/rabbitmq.ts';

const acme = 'acme' as TenantId;
const PUBLIC_URL = 'https://id.example';
const EVENT_TIME = new Date('2030-05-01T12:00:00.123Z');

const sessionWakeUp = (id: number | string): WakeUp => ({ type: 'session', tenantId: acme, sessionId: `s${id}` as SessionId });
const CLEAR_WAKE_UP: WakeUp = { type: 'cache', tenantId: acme, lists: 'trust-lists' };
const MISSED_WAKE_UP: WakeUp = { type: 'missed' };
const notice = (changes: Partial<SessionNotice> = {}): SessionNotice => ({
  tenantId: acme,
  sessionId: 's1' as SessionId,
  kind: 'issuance',
  version: 2,
  status: 'fetched',
  at: EVENT_TIME,
  ...changes,
});
const keyChainTask = (tenantId: string): BackgroundTask => ({ type: 'key-chains', tenantId: tenantId as TenantId });

class TestLog extends Log {
  readonly lines: string[] = [];

  #keep(level: string, message: string, fields: LogFields = {}): void {
    this.lines.push(`${level}: ${message} ${JSON.stringify(fields)}`);
  }

  override info(message: string, fields?: LogFields): void {
    this.#keep('info', message, fields);
  }

  override warn(message: string, fields?: LogFields): void {
    this.#keep('warn', message, fields);
  }

  override error(message: string, fields?: LogFields): void {
    this.#keep('error', message, fields);
  }

  has(pattern: RegExp): boolean {
    return this.lines.some((line) => pattern.test(line));
  }
}

/** The broker connection of one process of the service. */
class ServiceProcess {
  readonly log = new TestLog();
  readonly heard: WakeUp[] = [];
  readonly connection: RabbitConnection;
  readonly bus: RabbitEventBus;
  readonly publisher: RabbitEventPublisher;
  readonly work: RabbitWorkQueue;

  constructor(address: string, ca?: string) {
    this.connection = new RabbitConnection({ address, ca }, this.log);
    this.bus = new RabbitEventBus(this.connection, this.log);
    this.publisher = new RabbitEventPublisher(this.connection, { publicUrl: PUBLIC_URL }, this.log);
    this.work = new RabbitWorkQueue(this.connection, this.log);
    this.bus.subscribe((wakeUp) => this.heard.push(wakeUp));
  }

  isConnected(): Promise<void> {
    return waitUntil('connected', () => this.connection.isWritable, { about: () => this.log.lines.join('\n') });
  }
}

describe('RabbitMQ', () => {
  let rabbit: RabbitMq;
  const openProcesses: ServiceProcess[] = [];
  const proxies: CuttingProxy[] = [];
  const testConnections: ChannelModel[] = [];

  before(async function () {
    const broker = await startRabbitMq();
    if (broker === undefined) return this.skip();
    rabbit = broker;
  });
  afterEach(async () => {
    for (const serviceProcess of openProcesses.splice(0)) await serviceProcess.connection.close();
    for (const proxy of proxies.splice(0)) await proxy.end();
    for (const connection of testConnections.splice(0)) await connection.close().catch(() => {});
  });
  after(() => rabbit?.stop());

  const startProcess = async (address = rabbit.url, ca?: string) => {
    const serviceProcess = new ServiceProcess(address, ca);
    openProcesses.push(serviceProcess);
    await serviceProcess.connection.open();
    return serviceProcess;
  };
  const startConnected = async (address?: string) => {
    const serviceProcess = await startProcess(address);
    await serviceProcess.isConnected();
    serviceProcess.heard.length = 0;
    return serviceProcess;
  };
  const startWithProxy = async () => {
    const proxy = await cuttingProxy(rabbit.url);
    proxies.push(proxy);
    return proxy;
  };
  const channel = async () => {
    const connection = await rabbit.connect();
    testConnections.push(connection);
    return connection.createConfirmChannel();
  };
  /** Subscribes a queue of an external system. @returns its messages. */
  const subscribed = async (pattern: string, options: object = { exclusive: true }) => {
    const consumerChannel = await channel();
    await consumerChannel.assertExchange(EVENTS_EXCHANGE, 'topic');
    const { queue } = await consumerChannel.assertQueue('', options);
    await consumerChannel.bindQueue(queue, EVENTS_EXCHANGE, pattern);
    const messages: ConsumeMessage[] = [];
    const consume = () => consumerChannel.consume(queue, (message) => message && messages.push(message), { noAck: true });
    return { messages, read: consume, queue };
  };

  it('notifies subscribers of credentials that were revoked with their wallet', async () => {
    const serviceProcess = await startConnected();
    const [allMessages, statusMessages, sessions] = [
      await subscribed('acme.#'),
      await subscribed('*.issuance.revoked'),
      await subscribed('acme.issuance.completed'),
    ];
    const at = new Date('2031-01-01T00:00:00Z');
    const notice = { ...{ tenantId: acme, sessionId: 's1' as never, batchId: 'b1', credentialConfigurationId: 'pid', at } };
    expect(await serviceProcess.publisher.publishRevocation(notice)).to.equal(true);
    for (const { read: consume } of [allMessages, statusMessages, sessions]) await consume();
    await waitUntil('both queues have their message', () => allMessages.messages.length + statusMessages.messages.length === 2);
    const [message] = statusMessages.messages;
    const event = JSON.parse(message?.content.toString() ?? '');
    expect(event).to.deep.equal({
      specversion: '1.0',
      id: 's1.b1.revoked',
      source: `${PUBLIC_URL}/acme`,
      type: 'vidimus.credentials.revoked',
      subject: 's1',
      time: at.toISOString(),
      datacontenttype: 'application/json',
      data: { tenantId: 'acme', sessionId: 's1', credentialConfigurationId: 'pid', reason: 'wallet_revoked' },
    });
    expect(message?.properties.messageId).to.equal(event.id);
    expect(sessions.messages).to.deep.equal([]);
  });

  describe('as event bus', () => {
    it('wakes this process at once and all others once each, in order', async () => {
      const [first, second, third] = [await startConnected(), await startConnected(), await startConnected()];
      const wakeUps = Array.from({ length: 1_200 }, (_, index) => sessionWakeUp(index));
      const otherWakeUps: readonly WakeUp[] = [
        { type: 'tenant', tenantId: acme },
        { type: 'status-list', tenantId: acme, listId: 'list' },
        CLEAR_WAKE_UP,
      ];
      for (const wakeUp of [...wakeUps, ...otherWakeUps]) first.bus.publish(wakeUp);
      expect(first.heard, 'here').to.deep.equal([...wakeUps, ...otherWakeUps]);
      second.bus.publish(sessionWakeUp('last'));
      for (const receiver of [second, third])
        await waitUntil(
          'the process received three wake-ups besides those of sessions',
          () => receiver.heard.filter((wakeUp) => wakeUp.type !== 'session').length === 3,
        );
      await waitUntil('the first process received all wake-ups', () => first.heard.length === 1_204);
      const receivedWakeUps = (serviceProcess: ServiceProcess) =>
        serviceProcess.heard.filter((wakeUp) => wakeUp.type !== 'session' || wakeUp.sessionId !== 'slast');
      for (const serviceProcess of [first, second, third])
        expect(receivedWakeUps(serviceProcess)).to.deep.equal([...wakeUps, ...otherWakeUps]);
    });

    it('ignores invalid messages from any sender', async () => {
      const [first, second] = [await startConnected(), await startConnected()];
      const outsider = await channel();
      const send = (content: unknown, options: object = {}) =>
        outsider.publish(WAKE_EXCHANGE, '', Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content)), options);
      const invalidMessages: readonly unknown[] = [
        Buffer.alloc(0),
        Buffer.from('{'),
        Buffer.from([0xff, 0xfe, 0x00]),
        Buffer.alloc(300_000, 0x20),
        null,
        'session',
        sessionWakeUp(1),
        [[sessionWakeUp(1)]],
        [{ type: 'session', tenantId: acme }],
        [{ type: 'session', tenantId: acme, sessionId: '' }],
        [{ type: 'session', tenantId: acme, sessionId: 's'.repeat(256) }],
        [{ type: 'session', tenantId: ['acme'], sessionId: 's1' }],
        [{ type: 'cache', tenantId: acme, lists: 'all' }],
        [{ type: 'shutdown' }],
        [sessionWakeUp(1), { type: 'unknown' }],
        Array.from({ length: 501 }, () => MISSED_WAKE_UP),
        JSON.parse('{"__proto__":[{"type":"missed"}],"length":1}'),
      ];
      for (const content of invalidMessages) send(content);
      send([sessionWakeUp(1)], { headers: { 'x-anything': 1 }, contentType: 'text/html', appId: '' });
      send([sessionWakeUp('end')]);
      for (const serviceProcess of [first, second]) {
        await waitUntil('the child process received its wake-ups', () => serviceProcess.heard.length > 1);
        expect(serviceProcess.heard).to.deep.equal([sessionWakeUp(1), sessionWakeUp('end')]);
      }
      first.bus.publish(sessionWakeUp('after'));
      await waitUntil('the second process received the next wake-ups', () => second.heard.length === 3);
    });

    it('drops what the broker cannot accept, without waiting or throwing, and signals that there was an event', async () => {
      const proxy = await startWithProxy();
      const [disconnected, connected] = [await startConnected(proxy.url), await startConnected()];
      proxy.cut();
      await waitUntil('the lost connection is detected', () => !disconnected.connection.isWritable);
      const start = performance.now();
      for (let i = 0; i < 100_000; i++) disconnected.bus.publish(sessionWakeUp(i));
      disconnected.bus.publish(CLEAR_WAKE_UP);
      expect(performance.now() - start).to.be.lessThan(1_000);
      expect(disconnected.heard).to.have.length(100_001);
      connected.bus.publish(CLEAR_WAKE_UP);
      proxy.restore();
      await disconnected.isConnected();
      expect(disconnected.heard.at(-1), 'what others sent meanwhile').to.deep.equal(MISSED_WAKE_UP);
      await waitUntil('the process received a second wake-up', () => connected.heard.length > 1);
      expect(connected.heard, 'once, instead of all of it').to.deep.equal([CLEAR_WAKE_UP, MISSED_WAKE_UP]);
    });

    it('buffers little while the broker does not read, and continues when it does', async () => {
      const [first, second] = [await startConnected(), await startConnected()];
      await rabbit.block();
      try {
        // Enough messages for a notification of the alarm, which only publishers receive.
        first.bus.publish(sessionWakeUp('first'));
        const { heapUsed, external } = process.memoryUsage();
        const start = performance.now();
        for (let i = 0; i < 200_000; i++) {
          first.bus.publish(sessionWakeUp(i % 10));
          if (i % 1_000 === 0) first.heard.length = 0;
        }
        expect(performance.now() - start).to.be.lessThan(2_000);
        const memoryAfter = process.memoryUsage();
        const growth = memoryAfter.heapUsed + memoryAfter.external - heapUsed - external;
        expect(growth / 1024 ** 2, 'MiB, including garbage').to.be.lessThan(80);
        await waitUntil('the process knows that its connection is lost', () => !first.connection.isWritable);
        first.bus.publish(CLEAR_WAKE_UP);
      } finally {
        await rabbit.unblock();
      }
      await waitUntil('the second process received a missed wake-up', () => second.heard.some(({ type }) => type === 'missed'));
      expect(second.heard.length).to.be.lessThan(40_000);
    });

    it('is restored after its exchange was deleted', async () => {
      const [one, two] = [await startConnected(), await startConnected()];
      const outsider = await channel();
      await outsider.deleteExchange(WAKE_EXCHANGE);
      one.bus.publish(sessionWakeUp(1));
      await waitUntil('the lost connections are detected', () => !one.connection.isWritable);
      await one.isConnected();
      await rabbit.control('close_all_connections', 'the queue of the other has to be bound again');
      await waitUntil('the lost connections are detected', () => !one.connection.isWritable && !two.connection.isWritable);
      await Promise.all([one.isConnected(), two.isConnected()]);
      await waitUntil('the connection works again', () => {
        one.bus.publish(sessionWakeUp('again'));
        return two.heard.some((wakeUp) => wakeUp.type === 'session' && wakeUp.sessionId === 'sagain');
      });
    });
  });

  describe('for subscribers', () => {
    it('publishes trust lists that need a review', async () => {
      const { publisher } = await startConnected();
      const lists = await subscribed('acme.trust-list.#');
      const trustListNotice = {
        ...{ tenantId: acme, listId: 'l1', list: 'https://lists.example/list', reason: 'untrusted_signer' },
        ...{ signer: 'fingerprint', key: 'untrusted_signer MIIB', at: EVENT_TIME },
      };
      await lists.read();
      expect(await publisher.publishHeldList(trustListNotice)).to.equal(true);
      await waitUntil('the notice of the status list arrives', () => lists.messages.length === 1);
      const [message] = lists.messages as [ConsumeMessage];
      const event = JSON.parse(message.content.toString());
      expect(new CloudEvent(event).validate()).to.equal(true);
      expect(message.fields.routingKey).to.equal('acme.trust-list.held');
      expect(event).to.deep.include({
        ...{ type: 'vidimus.trust-list.held', source: `${PUBLIC_URL}/acme`, subject: 'l1' },
        data: { ...{ tenantId: 'acme', listId: 'l1', list: trustListNotice.list, reason: trustListNotice.reason, signer: 'fingerprint' } },
      });
      expect(message.properties.messageId).to.equal(event.id);
    });

    it('publishes persistent CloudEvents by tenant, kind and status', async () => {
      const { publisher } = await startConnected();
      const [allNotices, completedNotices] = [await subscribed('#'), await subscribed('*.presentation.completed')];
      await allNotices.read();
      await completedNotices.read();
      const notices = [
        notice({ version: 1, status: 'active' }),
        notice(),
        notice({ kind: 'verification', status: 'completed', sessionId: 's2' as SessionId }),
      ];
      expect(await publisher.publish(notices)).to.equal(3);
      await waitUntil('the notices arrive', () => allNotices.messages.length === 3 && completedNotices.messages.length === 1);
      expect(allNotices.messages.map(({ fields }) => fields.routingKey)).to.deep.equal([
        'acme.issuance.active',
        'acme.issuance.fetched',
        'acme.presentation.completed',
      ]);
      const [, message] = allNotices.messages;
      expect(message?.properties).to.include({ contentType: 'application/cloudevents+json', messageId: 's1.2', deliveryMode: 2 });
      const event = JSON.parse(message?.content.toString() ?? '');
      expect(new CloudEvent(event).validate()).to.equal(true);
      expect(event).to.deep.equal({
        specversion: '1.0',
        id: 's1.2',
        source: 'https://id.example/acme',
        type: 'vidimus.session.fetched',
        subject: 's1',
        time: '2030-05-01T12:00:00.123Z',
        datacontenttype: 'application/json',
        data: { tenantId: 'acme', sessionId: 's1', kind: 'issuance', status: 'fetched', version: 2 },
      });
    });

    it('reports how many events were accepted when a queue rejects the rest', async () => {
      const { publisher } = await startConnected();
      const boundedQueue = await subscribed('#', { exclusive: true, arguments: { 'x-max-length': 2, 'x-overflow': 'reject-publish' } });
      const notices = [1, 2, 3, 4].map((version) => notice({ version }));
      expect(await publisher.publish(notices)).to.be.within(2, 3);
      await boundedQueue.read();
      await waitUntil('the bounded queue has room', () => boundedQueue.messages.length >= 2);
      expect(await publisher.publish([notice({ version: 5 })])).to.equal(1);
    });

    it('throws when the connection is lost before events are confirmed', async () => {
      const proxy = await startWithProxy();
      const { publisher, connection } = await startConnected(proxy.url);
      const publishing = publisher.publish(Array.from({ length: 500 }, (_, version) => notice({ version })));
      proxy.cut();
      const outcome = await publishing.catch((error: unknown) => error);
      expect(outcome).to.be.instanceOf(Error);
      expect(publisher.isReady).to.equal(false);
      const rejection = await publisher.publish([notice()]).catch((error: unknown) => error);
      expect(rejection).to.be.instanceOf(Error);
      proxy.restore();
      await waitUntil('the connection is restored', () => connection.isWritable && publisher.isReady);
      expect(await publisher.publish([notice()])).to.equal(1);
    });
  });

  describe('as work queue', () => {
    /** Processes tasks until the end of the test. */
    const startWorking = async (work: (task: BackgroundTask, name: number) => Promise<void>, count: number) => {
      const processes = await Promise.all(Array.from({ length: count }, () => startConnected()));
      for (const [name, { work: queue }] of processes.entries()) queue.serve((task) => work(task, name));
      return processes;
    };

    it('passes each task to one process, one at a time', async () => {
      const completedTasks: string[] = [];
      const tasksByWorker = new Map<number, number>();
      let maxTasks = 0;
      const underWay = new Map<number, number>();
      const workers = await startWorking(async (task, name) => {
        underWay.set(name, (underWay.get(name) ?? 0) + 1);
        maxTasks = Math.max(maxTasks, underWay.get(name) ?? 0);
        await new Promise((resolve) => setTimeout(resolve, 5));
        underWay.set(name, (underWay.get(name) ?? 0) - 1);
        tasksByWorker.set(name, (tasksByWorker.get(name) ?? 0) + 1);
        completedTasks.push(task.tenantId);
      }, 2);
      const tenants = Array.from({ length: 20 }, (_, index) => `t${index}`);
      for (const tenant of tenants) expect(await workers[0]?.work.offer(keyChainTask(tenant))).to.equal(true);
      await waitUntil('twenty tasks are done', () => completedTasks.length >= 20);
      expect(completedTasks.toSorted()).to.deep.equal(tenants.toSorted());
      expect(maxTasks).to.equal(1);
      expect([...tasksByWorker.keys()].toSorted()).to.deep.equal([0, 1]);
    });

    it('contains the data that a list needs, and rejects an invalid task', async () => {
      const receivedTasks: BackgroundTask[] = [];
      const [one] = await startWorking(async (task) => {
        receivedTasks.push(task);
      }, 1);
      const outsider = await channel();
      for (const text of ['', '{', '[]', '{"type":"format-disk"}', '{"type":"key-chains"}'])
        outsider.publish(WORK_QUEUE, WORK_QUEUE, Buffer.from(text));
      await outsider.waitForConfirms();
      const task: BackgroundTask = { type: 'trust-list', tenantId: acme, id: 'one', nextUpdate: EVENT_TIME };
      expect(await one?.work.offer(task)).to.equal(true);
      await waitUntil('the task arrives', () => receivedTasks.length > 0);
      expect(receivedTasks).to.deep.equal([task]);
      expect(one?.log.lines.filter((line) => line.includes('is not a task'))).to.have.length(5);
    });

    it('retries a failed task a few times, and then drops it, which the log reports', async () => {
      let attempts = 0;
      const [one] = await startWorking(async ({ tenantId }) => {
        if (tenantId !== 'bad') return;
        attempts++;
        throw new Error('never');
      }, 1);
      await one?.work.offer(keyChainTask('bad'));
      await waitUntil('the task is dropped', () => one?.log.has(/^error: a task was started too often.*"bad"/) === true);
      expect(attempts).to.equal(3);
      expect(await one?.work.offer(keyChainTask('good'))).to.equal(true);
      await waitUntil('the queue is empty', async () => /\s0$/m.test(await depth()));
    });

    it('passes a task to another process when its process has ended', async () => {
      const proxy = await startWithProxy();
      const firstProcess = await startConnected(proxy.url);
      let hasBegun = false;
      firstProcess.work.serve(() => {
        hasBegun = true;
        return new Promise(() => {});
      });
      await firstProcess.work.offer(keyChainTask('acme'));
      await waitUntil('the task began', () => hasBegun);
      let isTaskDone = false;
      const secondProcess = await startConnected();
      secondProcess.work.serve(async () => {
        isTaskDone = true;
      });
      proxy.cut();
      await waitUntil('another process did the task', () => isTaskDone);
    });

    it('leaves a task to its offering process while the broker is unavailable or accepts nothing', async () => {
      const proxy = await startWithProxy();
      const one = await startConnected(proxy.url);
      proxy.cut();
      await waitUntil('the lost connection is detected', () => !one.connection.isWritable);
      expect(await one.work.offer(keyChainTask('acme'))).to.equal(false);
      const otherProcess = await startConnected();
      await rabbit.block();
      try {
        const start = performance.now();
        expect(await otherProcess.work.offer(keyChainTask('acme'))).to.equal(false);
        expect(performance.now() - start).to.be.lessThan(3_000);
        await waitUntil('the process knows that its connection is lost', () => !otherProcess.connection.isWritable);
        expect(await otherProcess.connection.assertReachable().catch((error: Error) => error.message)).to.match(/alarm/);
        expect(await otherProcess.work.offer(keyChainTask('acme'))).to.equal(false);
      } finally {
        await rabbit.unblock();
      }
      await otherProcess.isConnected();
      otherProcess.work.serve(async () => {});
      await waitUntil('the queue is empty', async () => /\s0$/m.test(await depth()));
    });

    it('does not affect wake-ups and events when its queue cannot be used', async () => {
      const outsider = await channel();
      await outsider.deleteQueue(WORK_QUEUE);
      await outsider.assertQueue(WORK_QUEUE, { durable: true });
      try {
        const [one, two] = [await startConnected(), await startConnected()];
        expect(one.log.has(/^error: the work queue cannot be used.*must be deleted/)).to.equal(true);
        one.work.serve(async () => {});
        expect(await one.work.offer(keyChainTask('acme')), 'it is done here').to.equal(false);
        expect(await one.publisher.publish([notice()])).to.equal(1);
        one.bus.publish(sessionWakeUp(1));
        await waitUntil('a wake-up arrives', () => two.heard.length > 0);
      } finally {
        await outsider.deleteQueue(WORK_QUEUE);
      }
    });

    const depth = () => rabbit.control('list_queues', '--quiet', 'name', 'messages');
  });

  describe('as a connection', () => {
    const wait = async (serviceProcess: ServiceProcess, pattern: RegExp) => {
      await waitUntil(`${pattern}`, () => serviceProcess.log.has(pattern), { about: () => serviceProcess.log.lines.join('\n') });
      expect(serviceProcess.log.lines.join('\n')).to.not.include('s3cret');
    };

    it('is one for all uses, also by TLS with the configured authority', async () => {
      const { url, ca } = rabbit.tls;
      const serviceProcess = await startProcess(url, ca);
      await serviceProcess.isConnected();
      await serviceProcess.connection.assertReachable();
      const connections = await rabbit.control('list_connections', 'ssl', 'name');
      expect(connections.split('\n').filter((line) => line.startsWith('true'))).to.have.length(1);
      await wait(await startProcess(url), /^warn: .*certificate/);
      const connectionError = await startProcess(url, '/nowhere/ca.pem').catch((error: Error) => error.message);
      expect(connectionError).to.equal('AMQP_CA: /nowhere/ca.pem cannot be read');
    });

    it('reports a fault of its address, without the password', async () => {
      const { host } = new URL(rabbit.url);
      await wait(await startProcess(`amqp://guest:s3cret@${host}/`), /the broker rejects the user/);
      await wait(await startProcess(`amqp://guest:guest@${host}/nothing`), /there is no such virtual host/);
      const unreachable = await startProcess('amqp://guest:s3cret@127.0.0.1:9/');
      await wait(unreachable, /does not answer \(ECONNREFUSED\)/);
      expect(await unreachable.connection.assertReachable().catch((error: Error) => error.message)).to.match(/ECONNREFUSED/);
      const malformedUrl = await startProcess(`amqp://guest:%zz@${host}/`).catch((error: Error) => error.message);
      expect(malformedUrl).to.match(/^AMQP_URL: /);
    });

    it('is established once the user has the required rights', async () => {
      const password = 's3cret ü/%@:';
      const { host } = new URL(rabbit.url);
      await rabbit.control('add_user', 'vidimus', password);
      await rabbit.control('set_permissions', 'vidimus', '^$', '^$', '^$');
      const serviceProcess = await startProcess(`amqp://vidimus:${encodeURIComponent(password)}@${host}/`);
      await wait(serviceProcess, /the user lacks a right/);
      await rabbit.control('set_permissions', 'vidimus', '^vidimus\\.', '^vidimus\\.', '^vidimus\\.');
      await serviceProcess.isConnected();
      expect(await serviceProcess.publisher.publish([notice()])).to.equal(1);
      expect(await serviceProcess.work.offer(keyChainTask('nobody'))).to.equal(true);
      serviceProcess.work.serve(async () => {});
      await rabbit.control('delete_user', 'vidimus');
    });
  });
});
