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
import { type RabbitMq, startRabbitMq, until } from '../support/rabbitmq.ts';

const acme = 'acme' as TenantId;
const PUBLIC_URL = 'https://id.example';
const AT = new Date('2030-05-01T12:00:00.123Z');

const ofSession = (id: number | string): WakeUp => ({ type: 'session', tenantId: acme, sessionId: `s${id}` as SessionId });
const clearing: WakeUp = { type: 'cache', tenantId: acme, lists: 'trust-lists' };
const missed: WakeUp = { type: 'missed' };
const notice = (changes: Partial<SessionNotice> = {}): SessionNotice => ({
  tenantId: acme,
  sessionId: 's1' as SessionId,
  kind: 'issuance',
  version: 2,
  status: 'fetched',
  at: AT,
  ...changes,
});
const ofKeys = (tenantId: string): BackgroundTask => ({ type: 'key-chains', tenantId: tenantId as TenantId });

class KeptLog extends Log {
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

/** What one process of the service has of the broker. */
class Member {
  readonly log = new KeptLog();
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
    return until('connected', () => this.connection.isWritable, { about: () => this.log.lines.join('\n') });
  }
}

describe('RabbitMQ', () => {
  let rabbit: RabbitMq;
  const members: Member[] = [];
  const proxies: CuttingProxy[] = [];
  const outside: ChannelModel[] = [];

  before(async function () {
    const started = await startRabbitMq();
    if (started === undefined) return this.skip();
    rabbit = started;
  });
  afterEach(async () => {
    for (const member of members.splice(0)) await member.connection.close();
    for (const proxy of proxies.splice(0)) await proxy.end();
    for (const connection of outside.splice(0)) await connection.close().catch(() => {});
  });
  after(() => rabbit?.stop());

  const begin = async (address = rabbit.url, ca?: string) => {
    const member = new Member(address, ca);
    members.push(member);
    await member.connection.open();
    return member;
  };
  const joined = async (address?: string) => {
    const member = await begin(address);
    await member.isConnected();
    member.heard.length = 0;
    return member;
  };
  const cuttable = async () => {
    const proxy = await cuttingProxy(rabbit.url);
    proxies.push(proxy);
    return proxy;
  };
  const channel = async () => {
    const connection = await rabbit.connect();
    outside.push(connection);
    return connection.createConfirmChannel();
  };
  /** A queue of another system. @returns what arrives in it. */
  const subscribed = async (pattern: string, options: object = { exclusive: true }) => {
    const own = await channel();
    await own.assertExchange(EVENTS_EXCHANGE, 'topic');
    const { queue } = await own.assertQueue('', options);
    await own.bindQueue(queue, EVENTS_EXCHANGE, pattern);
    const messages: ConsumeMessage[] = [];
    const read = () => own.consume(queue, (message) => message && messages.push(message), { noAck: true });
    return { messages, read, queue };
  };

  it('notifies subscribers of credentials that were revoked with their wallet', async () => {
    const member = await joined();
    const [all, one, sessions] = [
      await subscribed('acme.#'),
      await subscribed('*.issuance.revoked'),
      await subscribed('acme.issuance.completed'),
    ];
    const at = new Date('2031-01-01T00:00:00Z');
    const notice = { ...{ tenantId: acme, sessionId: 's1' as never, batchId: 'b1', credentialConfigurationId: 'pid', at } };
    expect(await member.publisher.publishRevocation(notice)).to.equal(true);
    for (const { read } of [all, one, sessions]) await read();
    await until('both', () => all.messages.length + one.messages.length === 2);
    const [message] = one.messages;
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
      const [one, two, three] = [await joined(), await joined(), await joined()];
      const all = Array.from({ length: 1_200 }, (_, index) => ofSession(index));
      const others: readonly WakeUp[] = [
        { type: 'tenant', tenantId: acme },
        { type: 'status-list', tenantId: acme, listId: 'list' },
        clearing,
      ];
      for (const wakeUp of [...all, ...others]) one.bus.publish(wakeUp);
      expect(one.heard, 'here').to.deep.equal([...all, ...others]);
      two.bus.publish(ofSession('last'));
      for (const other of [two, three])
        await until('all of it', () => other.heard.filter((wakeUp) => wakeUp.type !== 'session').length === 3);
      await until('the other way', () => one.heard.length === 1_204);
      const told = (member: Member) => member.heard.filter((wakeUp) => wakeUp.type !== 'session' || wakeUp.sessionId !== 'slast');
      for (const member of [one, two, three]) expect(told(member)).to.deep.equal([...all, ...others]);
    });

    it('ignores invalid messages from any sender', async () => {
      const [one, two] = [await joined(), await joined()];
      const outsider = await channel();
      const send = (content: unknown, options: object = {}) =>
        outsider.publish(WAKE_EXCHANGE, '', Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content)), options);
      const rubbish: readonly unknown[] = [
        Buffer.alloc(0),
        Buffer.from('{'),
        Buffer.from([0xff, 0xfe, 0x00]),
        Buffer.alloc(300_000, 0x20),
        null,
        'session',
        ofSession(1),
        [[ofSession(1)]],
        [{ type: 'session', tenantId: acme }],
        [{ type: 'session', tenantId: acme, sessionId: '' }],
        [{ type: 'session', tenantId: acme, sessionId: 's'.repeat(256) }],
        [{ type: 'session', tenantId: ['acme'], sessionId: 's1' }],
        [{ type: 'cache', tenantId: acme, lists: 'all' }],
        [{ type: 'shutdown' }],
        [ofSession(1), { type: 'unknown' }],
        Array.from({ length: 501 }, () => missed),
        JSON.parse('{"__proto__":[{"type":"missed"}],"length":1}'),
      ];
      for (const content of rubbish) send(content);
      send([ofSession(1)], { headers: { 'x-anything': 1 }, contentType: 'text/html', appId: '' });
      send([ofSession('end')]);
      for (const member of [one, two]) {
        await until('the end', () => member.heard.length > 1);
        expect(member.heard).to.deep.equal([ofSession(1), ofSession('end')]);
      }
      one.bus.publish(ofSession('after'));
      await until('what follows', () => two.heard.length === 3);
    });

    it('drops what the broker cannot accept, without waiting or throwing, and signals that there was an event', async () => {
      const proxy = await cuttable();
      const [cut, other] = [await joined(proxy.url), await joined()];
      proxy.cut();
      await until('it is noticed', () => !cut.connection.isWritable);
      const start = performance.now();
      for (let i = 0; i < 100_000; i++) cut.bus.publish(ofSession(i));
      cut.bus.publish(clearing);
      expect(performance.now() - start).to.be.lessThan(1_000);
      expect(cut.heard).to.have.length(100_001);
      other.bus.publish(clearing);
      proxy.restore();
      await cut.isConnected();
      expect(cut.heard.at(-1), 'what others sent meanwhile').to.deep.equal(missed);
      await until('it is told', () => other.heard.length > 1);
      expect(other.heard, 'once, instead of all of it').to.deep.equal([clearing, missed]);
    });

    it('buffers little while the broker does not read, and continues when it does', async () => {
      const [one, two] = [await joined(), await joined()];
      await rabbit.block();
      try {
        // Enough to be told of the alarm, which is told to those who send.
        one.bus.publish(ofSession('first'));
        const { heapUsed, external } = process.memoryUsage();
        const start = performance.now();
        for (let i = 0; i < 200_000; i++) {
          one.bus.publish(ofSession(i % 10));
          if (i % 1_000 === 0) one.heard.length = 0;
        }
        expect(performance.now() - start).to.be.lessThan(2_000);
        const after = process.memoryUsage();
        const grown = after.heapUsed + after.external - heapUsed - external;
        expect(grown / 1024 ** 2, 'MiB, with what nobody collected yet').to.be.lessThan(80);
        await until('it is known', () => !one.connection.isWritable);
        one.bus.publish(clearing);
      } finally {
        await rabbit.unblock();
      }
      await until('what was dropped is made up for', () => two.heard.some(({ type }) => type === 'missed'));
      expect(two.heard.length).to.be.lessThan(40_000);
    });

    it('is restored after its exchange was deleted', async () => {
      const [one, two] = [await joined(), await joined()];
      const outsider = await channel();
      await outsider.deleteExchange(WAKE_EXCHANGE);
      one.bus.publish(ofSession(1));
      await until('it was noticed', () => !one.connection.isWritable);
      await one.isConnected();
      await rabbit.control('close_all_connections', 'the queue of the other has to be bound again');
      await until('it was noticed', () => !one.connection.isWritable && !two.connection.isWritable);
      await Promise.all([one.isConnected(), two.isConnected()]);
      await until('it works', () => {
        one.bus.publish(ofSession('again'));
        return two.heard.some((wakeUp) => wakeUp.type === 'session' && wakeUp.sessionId === 'sagain');
      });
    });
  });

  describe('for subscribers', () => {
    it('publishes trust lists that need a review', async () => {
      const { publisher } = await joined();
      const lists = await subscribed('acme.trust-list.#');
      const held = {
        ...{ tenantId: acme, listId: 'l1', list: 'https://lists.example/list', reason: 'untrusted_signer' },
        ...{ signer: 'fingerprint', key: 'untrusted_signer MIIB', at: AT },
      };
      await lists.read();
      expect(await publisher.publishHeldList(held)).to.equal(true);
      await until('it arrives', () => lists.messages.length === 1);
      const [message] = lists.messages as [ConsumeMessage];
      const event = JSON.parse(message.content.toString());
      expect(new CloudEvent(event).validate()).to.equal(true);
      expect(message.fields.routingKey).to.equal('acme.trust-list.held');
      expect(event).to.deep.include({
        ...{ type: 'vidimus.trust-list.held', source: `${PUBLIC_URL}/acme`, subject: 'l1' },
        data: { ...{ tenantId: 'acme', listId: 'l1', list: held.list, reason: held.reason, signer: 'fingerprint' } },
      });
      expect(message.properties.messageId).to.equal(event.id);
    });

    it('publishes persistent CloudEvents by tenant, kind and status', async () => {
      const { publisher } = await joined();
      const [everything, some] = [await subscribed('#'), await subscribed('*.presentation.completed')];
      await everything.read();
      await some.read();
      const notices = [
        notice({ version: 1, status: 'active' }),
        notice(),
        notice({ kind: 'verification', status: 'completed', sessionId: 's2' as SessionId }),
      ];
      expect(await publisher.publish(notices)).to.equal(3);
      await until('they are there', () => everything.messages.length === 3 && some.messages.length === 1);
      expect(everything.messages.map(({ fields }) => fields.routingKey)).to.deep.equal([
        'acme.issuance.active',
        'acme.issuance.fetched',
        'acme.presentation.completed',
      ]);
      const [, message] = everything.messages;
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
      const { publisher } = await joined();
      const full = await subscribed('#', { exclusive: true, arguments: { 'x-max-length': 2, 'x-overflow': 'reject-publish' } });
      const notices = [1, 2, 3, 4].map((version) => notice({ version }));
      expect(await publisher.publish(notices)).to.be.within(2, 3);
      await full.read();
      await until('there is room', () => full.messages.length >= 2);
      expect(await publisher.publish([notice({ version: 5 })])).to.equal(1);
    });

    it('does not report a task as accepted when that is unknown', async () => {
      const proxy = await cuttable();
      const { publisher, connection } = await joined(proxy.url);
      const sending = publisher.publish(Array.from({ length: 500 }, (_, version) => notice({ version })));
      proxy.cut();
      const outcome = await sending.catch((error: unknown) => error);
      expect(outcome).to.be.instanceOf(Error);
      expect(publisher.isReady).to.equal(false);
      const refused = await publisher.publish([notice()]).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(Error);
      proxy.restore();
      await until('it is back', () => connection.isWritable && publisher.isReady);
      expect(await publisher.publish([notice()])).to.equal(1);
    });
  });

  describe('as work queue', () => {
    /** Takes tasks until the test is over. */
    const working = async (work: (task: BackgroundTask, name: number) => Promise<void>, count: number) => {
      const all = await Promise.all(Array.from({ length: count }, () => joined()));
      for (const [name, { work: queue }] of all.entries()) queue.serve((task) => work(task, name));
      return all;
    };

    it('passes each task to one process, one at a time', async () => {
      const done: string[] = [];
      const byName = new Map<number, number>();
      let most = 0;
      const underWay = new Map<number, number>();
      const all = await working(async (task, name) => {
        underWay.set(name, (underWay.get(name) ?? 0) + 1);
        most = Math.max(most, underWay.get(name) ?? 0);
        await new Promise((resolve) => setTimeout(resolve, 5));
        underWay.set(name, (underWay.get(name) ?? 0) - 1);
        byName.set(name, (byName.get(name) ?? 0) + 1);
        done.push(task.tenantId);
      }, 2);
      const tenants = Array.from({ length: 20 }, (_, index) => `t${index}`);
      for (const tenant of tenants) expect(await all[0]?.work.offer(ofKeys(tenant))).to.equal(true);
      await until('all are done', () => done.length >= 20);
      expect(done.toSorted()).to.deep.equal(tenants.toSorted());
      expect(most).to.equal(1);
      expect([...byName.keys()].toSorted()).to.deep.equal([0, 1]);
    });

    it('contains the data that a list needs, and rejects an invalid task', async () => {
      const seen: BackgroundTask[] = [];
      const [one] = await working(async (task) => {
        seen.push(task);
      }, 1);
      const outsider = await channel();
      for (const text of ['', '{', '[]', '{"type":"format-disk"}', '{"type":"key-chains"}'])
        outsider.publish(WORK_QUEUE, WORK_QUEUE, Buffer.from(text));
      await outsider.waitForConfirms();
      const task: BackgroundTask = { type: 'trust-list', tenantId: acme, id: 'one', nextUpdate: AT };
      expect(await one?.work.offer(task)).to.equal(true);
      await until('it is there', () => seen.length > 0);
      expect(seen).to.deep.equal([task]);
      expect(one?.log.lines.filter((line) => line.includes('is not a task'))).to.have.length(5);
    });

    it('retries a failed task a few times, and then drops it, which the log reports', async () => {
      let attempts = 0;
      const [one] = await working(async ({ tenantId }) => {
        if (tenantId !== 'bad') return;
        attempts++;
        throw new Error('never');
      }, 1);
      await one?.work.offer(ofKeys('bad'));
      await until('it is dropped', () => one?.log.has(/^error: a task was started too often.*"bad"/) === true);
      expect(attempts).to.equal(3);
      expect(await one?.work.offer(ofKeys('good'))).to.equal(true);
      await until('the queue is empty', async () => /\s0$/m.test(await depth()));
    });

    it('passes a task to another process when its process has ended', async () => {
      const proxy = await cuttable();
      const first = await joined(proxy.url);
      let begun = false;
      first.work.serve(() => {
        begun = true;
        return new Promise(() => {});
      });
      await first.work.offer(ofKeys('acme'));
      await until('it began', () => begun);
      let done = false;
      const second = await joined();
      second.work.serve(async () => {
        done = true;
      });
      proxy.cut();
      await until('another did it', () => done);
    });

    it('leaves a task to its offering process while the broker is unavailable or accepts nothing', async () => {
      const proxy = await cuttable();
      const one = await joined(proxy.url);
      proxy.cut();
      await until('it is noticed', () => !one.connection.isWritable);
      expect(await one.work.offer(ofKeys('acme'))).to.equal(false);
      const other = await joined();
      await rabbit.block();
      try {
        const start = performance.now();
        expect(await other.work.offer(ofKeys('acme'))).to.equal(false);
        expect(performance.now() - start).to.be.lessThan(3_000);
        await until('it is known', () => !other.connection.isWritable);
        expect(await other.connection.assertReachable().catch((error: Error) => error.message)).to.match(/alarm/);
        expect(await other.work.offer(ofKeys('acme'))).to.equal(false);
      } finally {
        await rabbit.unblock();
      }
      await other.isConnected();
      other.work.serve(async () => {});
      await until('the queue is empty', async () => /\s0$/m.test(await depth()));
    });

    it('does not affect wake-ups and events when its queue cannot be used', async () => {
      const outsider = await channel();
      await outsider.deleteQueue(WORK_QUEUE);
      await outsider.assertQueue(WORK_QUEUE, { durable: true });
      try {
        const [one, two] = [await joined(), await joined()];
        expect(one.log.has(/^error: the work queue cannot be used.*must be deleted/)).to.equal(true);
        one.work.serve(async () => {});
        expect(await one.work.offer(ofKeys('acme')), 'it is done here').to.equal(false);
        expect(await one.publisher.publish([notice()])).to.equal(1);
        one.bus.publish(ofSession(1));
        await until('a wake-up', () => two.heard.length > 0);
      } finally {
        await outsider.deleteQueue(WORK_QUEUE);
      }
    });

    const depth = () => rabbit.control('list_queues', '--quiet', 'name', 'messages');
  });

  describe('as a connection', () => {
    const wait = async (member: Member, pattern: RegExp) => {
      await until(`${pattern}`, () => member.log.has(pattern), { about: () => member.log.lines.join('\n') });
      expect(member.log.lines.join('\n')).to.not.include('s3cret');
    };

    it('is one for all uses, also by TLS with the configured authority', async () => {
      const { url, ca } = rabbit.tls;
      const member = await begin(url, ca);
      await member.isConnected();
      await member.connection.assertReachable();
      const connections = await rabbit.control('list_connections', 'ssl', 'name');
      expect(connections.split('\n').filter((line) => line.startsWith('true'))).to.have.length(1);
      await wait(await begin(url), /^warn: .*certificate/);
      const missing = await begin(url, '/nowhere/ca.pem').catch((error: Error) => error.message);
      expect(missing).to.equal('AMQP_CA: /nowhere/ca.pem cannot be read');
    });

    it('reports a fault of its address, without the password', async () => {
      const { host } = new URL(rabbit.url);
      await wait(await begin(`amqp://guest:s3cret@${host}/`), /the broker rejects the user/);
      await wait(await begin(`amqp://guest:guest@${host}/nothing`), /there is no such virtual host/);
      const nobody = await begin('amqp://guest:s3cret@127.0.0.1:9/');
      await wait(nobody, /does not answer \(ECONNREFUSED\)/);
      expect(await nobody.connection.assertReachable().catch((error: Error) => error.message)).to.match(/ECONNREFUSED/);
      const odd = await begin(`amqp://guest:%zz@${host}/`).catch((error: Error) => error.message);
      expect(odd).to.match(/^AMQP_URL: /);
    });

    it('is established once the user has the required rights', async () => {
      const password = 's3cret ü/%@:';
      const { host } = new URL(rabbit.url);
      await rabbit.control('add_user', 'vidimus', password);
      await rabbit.control('set_permissions', 'vidimus', '^$', '^$', '^$');
      const member = await begin(`amqp://vidimus:${encodeURIComponent(password)}@${host}/`);
      await wait(member, /the user lacks a right/);
      await rabbit.control('set_permissions', 'vidimus', '^vidimus\\.', '^vidimus\\.', '^vidimus\\.');
      await member.isConnected();
      expect(await member.publisher.publish([notice()])).to.equal(1);
      expect(await member.work.offer(ofKeys('nobody'))).to.equal(true);
      member.work.serve(async () => {});
      await rabbit.control('delete_user', 'vidimus');
    });
  });
});
