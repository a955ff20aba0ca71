import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import sinon from 'sinon';
import { ConnectionDistributor, type ConnectionTarget } from '../../../bootstrap/workers/connection-distributor.ts';
import { RestartPause } from '../../../bootstrap/workers/supervisor.ts';
import { readSettings } from '../../../config/settings.ts';
import { shareOfWorker } from '../../../config/worker-share.ts';

const aConnection = (name: string) => ({ name, on: sinon.stub(), destroy: sinon.spy() });
type Connection = ReturnType<typeof aConnection>;

class Worker implements ConnectionTarget {
  readonly received: string[] = [];
  readonly kill = sinon.spy();

  hand(connection: Socket): void {
    this.received.push((connection as unknown as Connection).name);
  }
}

describe('connections of several workers', () => {
  let handover: ConnectionDistributor;
  const accept = (name: string): Connection => {
    const connection = aConnection(name);
    handover.accept(connection as unknown as Socket);
    return connection;
  };
  const workers = (): [Worker, Worker] => {
    const pair: [Worker, Worker] = [new Worker(), new Worker()];
    for (const worker of pair) handover.add(worker);
    return pair;
  };
  const isSettled = async () => {
    let settled = false;
    void handover.settled().then(() => {
      settled = true;
    });
    await setImmediate();
    return settled;
  };

  beforeEach(() => {
    handover = new ConnectionDistributor();
  });

  it('are assigned to each worker in turn', () => {
    const [first, second] = workers();
    for (const name of ['a', 'b', 'c', 'd']) {
      accept(name);
      for (const worker of [first, second]) handover.taken(worker);
    }
    expect([first.received, second.received]).to.deep.equal([
      ['a', 'c'],
      ['b', 'd'],
    ]);
  });

  it('are not assigned to a busy worker, and wait if all are busy', async () => {
    const [first, second] = workers();
    accept('a');
    accept('b');
    handover.taken(second);
    accept('c');
    accept('d');
    expect([first.received, second.received]).to.deep.equal([['a'], ['b', 'c']]);
    expect(await isSettled()).to.equal(false);
    handover.taken(first);
    expect(first.received).to.deep.equal(['a', 'd']);
  });

  it('are retained until the worker has received them', async () => {
    const [first] = workers();
    const connection = accept('a');
    sinon.assert.notCalled(connection.destroy);
    handover.taken(first);
    sinon.assert.calledOnce(connection.destroy);
    expect(await isSettled()).to.equal(true);
  });

  it('are assigned to another worker when theirs ends before it has received them', async () => {
    const [first, second] = workers();
    const connection = accept('a');
    handover.remove(first);
    expect(second.received).to.deep.equal(['a']);
    handover.remove(second);
    expect(await isSettled()).to.equal(false);
    sinon.assert.notCalled(connection.destroy);
    const third = new Worker();
    handover.add(third);
    expect(third.received).to.deep.equal(['a']);
    accept('b');
    handover.taken(third);
    expect([first.received, second.received, third.received], 'no connection for a worker that ended').to.deep.equal([
      ['a'],
      ['a'],
      ['a', 'b'],
    ]);
  });

  it('end a worker that accepts none within half a minute, and no other', () => {
    const clock = sinon.useFakeTimers();
    try {
      const [first, second] = workers();
      accept('a');
      accept('b');
      handover.taken(second);
      clock.tick(29_000);
      sinon.assert.notCalled(first.kill);
      clock.tick(2_000);
      sinon.assert.calledOnce(first.kill);
      sinon.assert.notCalled(second.kill);
    } finally {
      clock.restore();
    }
  });
});

describe('pause before an ended worker is replaced', () => {
  it('increases while workers end early, up to a minute, and is reset after a long-lived one', () => {
    const pause = new RestartPause();
    const pauses = Array.from({ length: 11 }, () => pause.after(1_000));
    expect(pauses).to.deep.equal([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000]);
    expect([pause.after(60_000), pause.after(59_999)]).to.deep.equal([200, 400]);
  });
});

describe('limits of one worker', () => {
  const limitsWith = (settings: Readonly<Record<string, string>>) =>
    shareOfWorker(
      readSettings({
        DATABASE_URL: 'postgres://vidimus@127.0.0.1/vidimus',
        MASTER_SECRET: 'a master secret for the tests 0123456789',
        AUTH_CLIENT_ID: 'root',
        AUTH_CLIENT_SECRET: 'a-root-secret-of-some-length',
        ...settings,
      }),
    );

  it('are its share of the connections and memory of the service, rounded up', () => {
    expect(limitsWith({ WORKERS: '3', DATABASE_POOL: '20', MAX_CONNECTIONS: '1000', BODY_MEMORY: '100' })).to.include({
      DATABASE_POOL: 7,
      MAX_CONNECTIONS: 334,
      BODY_MEMORY: 34,
    });
  });

  it('have a usable minimum, and never exceed the configured value', () => {
    expect(limitsWith({ WORKERS: '16' })).to.include({ DATABASE_POOL: 4, BODY_MEMORY: 20 });
    const small = { WORKERS: '16', DATABASE_POOL: '2', BODY_MEMORY: '8' };
    expect(limitsWith(small)).to.include({ DATABASE_POOL: 2, BODY_MEMORY: 8 });
  });

  it('are not divided where a caller or a tenant would notice', () => {
    const undivided = { RATE_LIMIT_TOKEN: 600, RATE_LIMIT_LOGIN: 60, CACHE_MEMORY: 160, QUOTA_CLIENTS: 500 };
    expect(limitsWith({ WORKERS: '8' })).to.include(undivided);
  });
});
