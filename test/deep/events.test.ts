import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ChannelModel, type ConsumeMessage, connect } from 'amqplib';
import { expect } from 'chai';
import { CloudEvent } from 'cloudevents';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { issue, QUERY, Shop } from '../support/present.ts';
import { type CuttingProxy, cuttingProxy } from '../support/proxies.ts';
import { type RabbitMq, startRabbitMq, waitUntil } from '../support/rabbitmq.ts';
import { openStream } from '../support/sse.ts';
import { startedProgram } from '../support/start-options.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the events 0123456789';
const PAGE = readFileSync(new URL('../../docs/reference/events.md', import.meta.url), 'utf8');
const FOLDER = fileURLToPath(new URL('../..', import.meta.url));
const blocks = (language: string) =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, 'gm'))].map(([, text = '']) => text);

describe('events for other systems', () => {
  let rabbit: RabbitMq;
  const testConnections: ChannelModel[] = [];

  before(async function () {
    const broker = await startRabbitMq();
    if (broker === undefined) return this.skip();
    rabbit = broker;
  });
  after(async () => {
    for (const connection of testConnections) await connection.close().catch(() => {});
    await rabbit?.stop();
  });

  /** Declares a durable queue for the test. @returns a function that reads it. */
  const declare = async (queue: string, pattern: string) => {
    const connection = await rabbit.connect();
    const channel = await connection.createChannel();
    await channel.assertExchange('vidimus.events', 'topic', { durable: true });
    // A new quorum queue does not survive a crash of its only node within its first seconds.
    await channel.assertQueue(queue, { durable: true });
    await channel.bindQueue(queue, 'vidimus.events', pattern);
    await connection.close();
    return async () => {
      const readerConnection = await rabbit.connect();
      testConnections.push(readerConnection);
      const reader = await readerConnection.createChannel();
      const messages: ConsumeMessage[] = [];
      await reader.consume(queue, (message) => message && messages.push(message), { noAck: true });
      return messages;
    };
  };
  const parseEvent = ({ content }: ConsumeMessage) => JSON.parse(content.toString('utf8'));

  describe('of one process', () => {
    let shop: Shop;
    let messages: ConsumeMessage[];
    before(async () => {
      messages = await (await declare('all', '#'))();
      shop = await Shop.open({}, () => startTestService({ MASTER_SECRET, AMQP_URL: rabbit.url }, { runsJobs: true }));
    });
    after(() => shop?.close());
    beforeEach(() => {
      messages.length = 0;
    });

    it('contain a whole issuance and a whole presentation, in order, and no personal data', async () => {
      const credential = await issue(shop.service, shop.acme, 'card', {}, true);
      const request = await shop.requestPresentation();
      expect((await shop.call('GET', `/session/${request.session}`)).body.status).to.equal('fetched');
      expect((await shop.present(request, credential)).status).to.equal(200);
      await waitUntil('six messages arrive', () => messages.length >= 6);
      const expectStatusEvent = (session: string) =>
        messages.filter((message) => parseEvent(message).subject === session).map(({ fields }) => fields.routingKey);
      expect(expectStatusEvent(credential.session)).to.deep.equal(
        ['active', 'fetched', 'completed'].map((status) => `acme.issuance.${status}`),
      );
      expect(expectStatusEvent(request.session)).to.deep.equal(
        ['active', 'fetched', 'completed'].map((status) => `shop.presentation.${status}`),
      );
      for (const message of messages) {
        const event = parseEvent(message);
        expect(new CloudEvent(event).validate(), event.id).to.equal(true);
        expect(message.properties).to.deep.include({ contentType: 'application/cloudevents+json', messageId: event.id, deliveryMode: 2 });
        const [tenantId = '', kind, status] = message.fields.routingKey.split('.');
        expect(event).to.include({ source: `${shop.service.address}/${tenantId}`, type: `vidimus.session.${status}` });
        expect(event.data).to.include({ tenantId, kind, status, sessionId: event.subject });
        expect(message.content.toString()).to.not.match(/Ada|"card/);
      }
    });

    it('have the properties that the documentation lists', async () => {
      await shop.requestPresentation();
      await waitUntil('the first message arrives', () => messages.length > 0);
      const event = parseEvent(messages[0] as ConsumeMessage);
      const [documentedEvent = ''] = blocks('json');
      const documented = JSON.parse(documentedEvent);
      expect(new CloudEvent(documented).validate()).to.equal(true);
      expect(Object.keys(documented)).to.have.members(Object.keys(event));
      expect(Object.keys(documented.data)).to.have.members(Object.keys(event.data));
    });

    it('reach the subscriber of the documentation, with its accounts and no other rights', async () => {
      const { host } = new URL(rabbit.url);
      const passwords = { VIDIMUS_PASSWORD: 'of the service', SHOP_PASSWORD: 'of the shop' };
      const brokerUrl = (user: string, password: string) => `amqp://${user}:${encodeURIComponent(password)}@${host}/`;
      const SHOP_URL = brokerUrl('shop', passwords.SHOP_PASSWORD);
      const commands = blocks('sh');
      const shell = async (text: string) =>
        (await promisify(execFile)('sh', ['-ec', text], { env: { ...rabbit.environment, ...passwords }, cwd: FOLDER })).stdout;
      for (const text of commands.filter((block) => !block.includes('node '))) await shell(text);

      const [run = ''] = commands.filter((block) => block.includes('node '));
      const subscriber = spawn('sh', ['-ec', `exec env ${run.replace('node', process.execPath)}`], {
        env: { ...rabbit.environment, SHOP_URL },
        cwd: FOLDER,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const lines: string[] = [];
      subscriber.stdout.on('data', (chunk: Buffer) => lines.push(...chunk.toString().trim().split('\n')));
      try {
        await waitUntil('the consumer waits for messages', () => lines.includes('waiting for acme.#'));
        const { session } = await issue(shop.service, shop.acme, 'card', {}, true);
        await waitUntil('the consumer received three events', () => lines.filter((line) => line.includes(session)).length === 3);
        const ownRows = lines.filter((line) => line.includes(session)).map((line) => line.split(' ').slice(1));
        expect(ownRows).to.deep.equal(['active', 'fetched', 'completed'].map((status) => ['acme', 'issuance', session, status]));
      } finally {
        subscriber.kill('SIGKILL');
      }

      const expectRejected = async (attempt: (channel: Awaited<ReturnType<ChannelModel['createConfirmChannel']>>) => Promise<unknown>) => {
        const connection = await connect(SHOP_URL);
        connection.on('error', () => {});
        const channel = await connection.createConfirmChannel();
        channel.on('error', () => {});
        const outcome = await attempt(channel).then(
          () => 'allowed',
          (error: Error) => error.message,
        );
        await connection.close().catch(() => {});
        return outcome;
      };
      expect(await expectRejected((channel) => channel.bindQueue('shop.sessions', 'vidimus.events', 'acme.*.failed'))).to.equal('allowed');
      for (const pattern of ['#', 'shop.#', '*.issuance.active'])
        expect(await expectRejected((channel) => channel.bindQueue('shop.sessions', 'vidimus.events', pattern)), pattern).to.match(
          /ACCESS_REFUSED/,
        );
      expect(await expectRejected((channel) => channel.bindQueue('shop.sessions', 'vidimus.wake', ''))).to.match(/ACCESS_REFUSED/);
      expect(await expectRejected((channel) => channel.assertQueue('other'))).to.match(/ACCESS_REFUSED/);
      expect(await expectRejected((channel) => channel.consume('vidimus.work', () => {}))).to.match(/ACCESS_REFUSED/);
      for (const exchange of ['vidimus.events', 'vidimus.wake', 'vidimus.work']) {
        const published = expectRejected((channel) => {
          channel.publish(exchange, 'acme.issuance.active', Buffer.from('{}'));
          return channel.waitForConfirms();
        });
        expect(await published, exchange).to.not.equal('allowed');
      }

      // The service works with the rights of the page.
      const secondService = await startTestService(
        { MASTER_SECRET, AMQP_URL: brokerUrl('vidimus', passwords.VIDIMUS_PASSWORD) },
        { runsJobs: true },
      );
      try {
        const { token } = await createTenant(secondService, 'own');
        await secondService.call('POST', '/verifier/config', { token, json: { id: 'check', dcql_query: QUERY } });
        await secondService.call('POST', '/verifier/offer', { token, json: { response_type: 'uri', requestId: 'check' } });
        await waitUntil('the event of the presentation arrives', () =>
          messages.some(({ fields }) => fields.routingKey === 'own.presentation.active'),
        );
      } finally {
        await secondService.close();
      }
    });
  });

  describe('of two processes', () => {
    let database: TestDatabase | undefined;
    let proxy: CuttingProxy;
    let firstService: TestService;
    let secondProcess: Awaited<ReturnType<typeof startChild>>;
    let token: string;
    before(async function () {
      const [, postgres] = databases();
      database = await postgres?.open();
      if (database === undefined) return this.skip();
      proxy = await cuttingProxy(rabbit.url);
      const environment = { DATABASE_URL: database.url, MASTER_SECRET };
      const port = await freePort(createServer);
      const publicUrl = `http://localhost:${port}`;
      // The process that starts first publishes events; it can be killed.
      secondProcess = await startChild({ ...environment, PUBLIC_URL: publicUrl, AMQP_URL: rabbit.url });
      firstService = await startTestService(
        { ...environment, PORT: String(port), PUBLIC_URL: publicUrl, AMQP_URL: proxy.url },
        { runsJobs: true },
      );
      ({ token } = await createTenant(firstService, 'acme'));
      await firstService.call('POST', '/verifier/config', { token, json: { id: 'check', dcql_query: QUERY } });
    });
    after(async () => {
      await secondProcess?.kill();
      await firstService?.close();
      await proxy?.end();
      await database?.drop();
    });

    type CreatedRequest = { readonly session: string; readonly requestUri: string };
    const make = async (address = firstService.address): Promise<CreatedRequest> => {
      const json = { response_type: 'uri', requestId: 'check' };
      const { status, text, body } = await firstService.call('POST', `${address}/verifier/offer`, { token, json });
      expect(status, text).to.equal(201);
      return { session: body.session, requestUri: new URL(body.uri).searchParams.get('request_uri') ?? '' };
    };
    const fetchRequestAt = async (address: string, { requestUri }: CreatedRequest) => {
      const answer = await firstService.call('GET', requestUri.replace(firstService.address, address));
      expect(answer.status, answer.text).to.equal(200);
    };

    describe('reach streams of the other process', () => {
      /** Delay in milliseconds until each stream of the second process reports a change by the first process. */
      const delays = async (count: number): Promise<number[]> => {
        const createdRequest = await Promise.all(Array.from({ length: count }, () => make()));
        const streams = await Promise.all(
          createdRequest.map(({ session }) => openStream(`${secondProcess.address}/session/${session}/events?token=${token}`)),
        );
        for (const stream of streams) expect((await stream.next())?.data.status).to.equal('active');
        const durations = await Promise.all(
          streams.map(async (stream, index) => {
            const eventTime = stream.next().then(() => performance.now());
            await fetchRequestAt(firstService.address, createdRequest[index] as CreatedRequest);
            const changedAt = performance.now();
            return Math.max(0, (await eventTime) - changedAt);
          }),
        );
        for (const stream of streams) stream.leave();
        return durations.toSorted((first, other) => first - other);
      };

      it('by the broker, well before the process polls', async () => {
        await waitUntil('both processes are connected', async () => Math.max(...(await delays(1))) < 300);
        const durations = await delays(100);
        expect(durations[50], 'half of them').to.be.lessThan(800);
        expect(durations[99], 'all of them').to.be.lessThan(1_500);
      });

      it('by polling while the broker is unavailable', async () => {
        proxy.cut();
        try {
          const durations = await delays(100);
          expect(durations[99]).to.be.lessThan(4_000);
        } finally {
          proxy.restore();
        }
      });
    });

    describe('under load', () => {
      let readQueue: () => Promise<ConsumeMessage[]>;
      let load: ReturnType<typeof startLoad>;
      before(async () => {
        readQueue = await declare('load', 'acme.#');
        load = startLoad();
      });
      after(() => load?.stop());

      /** A load of offers and wallets at both processes, until it is stopped. */
      function startLoad() {
        const stopping = new AbortController();
        const sessions: string[] = [];
        let longest = 0;
        const loop = async (addressOf: () => string) => {
          while (!stopping.signal.aborted) {
            try {
              const start = performance.now();
              const createdRequest = await make(addressOf());
              longest = Math.max(longest, performance.now() - start);
              sessions.push(createdRequest.session);
              await fetchRequestAt(addressOf(), createdRequest);
              await new Promise((resolve) => setTimeout(resolve, 20));
            } catch (error) {
              // The test kills the second process at the end.
              if (!(error instanceof TypeError) || addressOf() === firstService.address) throw error;
              await new Promise((resolve) => setTimeout(resolve, 100));
            }
          }
        };
        const loops = Promise.all([() => firstService.address, () => secondProcess.address].map(loop));
        loops.catch(() => {});
        return {
          sessions,
          /** Duration of the slowest offer since the last call, in milliseconds. */
          longest() {
            const result = longest;
            longest = 0;
            return result;
          },
          async stop() {
            stopping.abort();
            await loops;
          },
        };
      }
      const countQueued = async () => {
        const connection = await rabbit.connect();
        try {
          return (await (await connection.createChannel()).checkQueue('load')).messageCount;
        } finally {
          await connection.close();
        }
      };
      /** Waits for new events. */
      const flows = async () => {
        const queuedBefore = await countQueued();
        await waitUntil('events arrive', async () => (await countQueued()) > queuedBefore + 20, { withinMs: 30_000 });
      };
      const slowestOffer = async (milliseconds: number) => {
        load.longest();
        await new Promise((resolve) => setTimeout(resolve, milliseconds));
        return load.longest();
      };

      it('are published while all components work', flows);

      it('are kept while the broker is down, which no request notices, and published when it is back', async () => {
        await rabbit.kill();
        // A request that waited for the broker would take its timeout of ten seconds.
        expect(await slowestOffer(1_000)).to.be.lessThan(5_000);
        await rabbit.restart();
        await flows();
      });

      it('are kept while the broker accepts nothing, which no request notices', async () => {
        await rabbit.block();
        const queuedBefore = await countQueued();
        expect(await slowestOffer(1_500)).to.be.lessThan(5_000);
        expect((await countQueued()) - queuedBefore).to.be.lessThan(20);
        await rabbit.unblock();
        await flows();
      });

      it('are published by the other process when the publishing process is killed', async () => {
        // Without a broker the first process leaves publishing to the second.
        proxy.cut();
        await flows();
        await secondProcess.kill();
        proxy.restore();
        await flows();
      });

      it('all arrive at least once, and those of a session in their order', async () => {
        await load.stop();
        const storedRows = await rawSql(database?.url ?? '', (run) =>
          run('select session_id, version from session_events order by session_id, version'),
        );
        const ownRows = storedRows.filter((row) => load.sessions.includes(String(row['session_id'])));
        const expectedEvents = ownRows.map((row) => `${row['session_id']}.${row['version']}`);
        expect(expectedEvents.length).to.be.greaterThan(100);
        const messages = await readQueue();
        const receivedEvents = new Map<string, { subject: string; version: number }>();
        await waitUntil(
          'all of them',
          () => {
            for (const message of messages.splice(0)) {
              const { id, subject, data } = parseEvent(message);
              if (!receivedEvents.has(id)) receivedEvents.set(id, { subject, version: data.version });
            }
            return expectedEvents.every((id) => receivedEvents.has(id));
          },
          { about: () => `${receivedEvents.size} of ${expectedEvents.length}` },
        );
        for (const session of load.sessions) {
          const sessionVersions = [...receivedEvents.values()].flatMap(({ subject, version }) => (subject === session ? [version] : []));
          expect(sessionVersions, session).to.deep.equal(sessionVersions.toSorted((first, other) => first - other));
        }
      });
    });
  });
});

/** Starts the service as a separate process that can be killed. */
async function startChild(environment: Readonly<Record<string, string>>) {
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const child = spawn(process.execPath, [startedProgram()], {
    env: {
      ...minimalEnvironment(),
      HOST: '127.0.0.1',
      PORT: String(port),
      AUTH_CLIENT_ID: ROOT.clientId,
      AUTH_CLIENT_SECRET: ROOT.secret,
      LOG_LEVEL: 'silent',
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const end = () => child.kill('SIGKILL');
  process.once('exit', end);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const isReady = () =>
    fetch(`${address}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitUntil('the process starts', async () => child.exitCode !== null || (await isReady()));
  return {
    address,
    async kill() {
      end();
      process.removeListener('exit', end);
      await exited;
    },
  };
}
