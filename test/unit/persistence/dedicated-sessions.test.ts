import { expect } from 'chai';
import { assertDedicatedSessions, SharedSessionError } from '../../../adapters/persistence/postgres/dedicated-sessions.ts';

type Session = { readonly pid: number; mark: string };
/** The order in which a pooler uses idle sessions: the last used one first, or the longest idle one first. */
type Choice = 'last used' | 'in turn';

/** A pooler in transaction mode: a connection has a session for one statement, or from `begin` to `rollback`. */
function pooler(sessions: number, choice: Choice) {
  const idle = Array.from({ length: sessions }, (_, index): Session => ({ pid: 100 + index, mark: '' }));
  const waiting: ((session: Session) => void)[] = [];
  const acquire = (): Promise<Session> => {
    const session = choice === 'in turn' ? idle.shift() : idle.pop();
    return session === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(session);
  };
  const release = (session: Session) => {
    const waiter = waiting.shift();
    if (waiter === undefined) idle.push(session);
    else waiter(session);
  };
  const destroyed: boolean[] = [];
  return { destroyed, connect: async () => client(acquire, release, destroyed) };
}

/** A server without a pooler: each connection has its own session. */
function server() {
  let pid = 100;
  const destroyed: boolean[] = [];
  const connect = async () => {
    const session = { pid: pid++, mark: '' };
    return client(
      () => Promise.resolve(session),
      () => {},
      destroyed,
    );
  };
  return { destroyed, connect };
}

function client(acquire: () => Promise<Session>, release: (session: Session) => void, destroyed: boolean[]) {
  let pinned: Session | undefined;
  return {
    async query({ text, values }: { readonly text: string; readonly values: readonly string[] }) {
      const session = pinned ?? (await acquire());
      if (text === 'begin') pinned = session;
      if (text.includes('set_config')) session.mark = String(values[0]);
      const rows = [{ pid: session.pid, mark: session.mark }];
      if (text === 'rollback') pinned = undefined;
      if (pinned === undefined) release(session);
      return { rows };
    },
    release: (isDestroyed = false) => {
      destroyed.push(isDestroyed);
    },
  };
}

describe('assertDedicatedSessions', () => {
  it('accepts connections with a session each, and keeps them', async () => {
    const pool = server();
    await assertDedicatedSessions(pool);
    expect(pool.destroyed).to.deep.equal([false, false]);
  });

  for (const choice of ['last used', 'in turn'] as const)
    for (const sessions of [2, 3, 4, 8])
      it(`rejects and closes connections that share ${sessions} sessions, ${choice}`, async () => {
        const pool = pooler(sessions, choice);
        const error = await assertDedicatedSessions(pool).catch((error: unknown) => error);
        expect(error).to.be.instanceOf(SharedSessionError);
        expect(pool.destroyed).to.deep.equal([true, true]);
      });
});
