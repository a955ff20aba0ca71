import { Flows } from './flows.ts';
import { KeyRing } from './wallet-crypto.ts';
import { type Format, type Measured, type Order, type Report, revocableSession } from './world.ts';

/**
 * The process of the wallets: it takes orders from the bench over the channel to its parent, so that nothing of what
 * wallets compute is counted as the service's.
 */
type Run = Extract<Order, { kind: 'run' }>;

const MAX_MESSAGES = 5;
const AFTER_ERROR_MS = 10;

const keys = new KeyRing();
/** Flows by the index of their tenant. */
const flowsByWorld = new Map<number, Flows>();

process.on('message', (order: Order & { readonly at: number }) => {
  execute(order).catch((error: unknown) => {
    report({ kind: 'broken', message: error instanceof Error ? error.message : String(error) });
  });
});

async function execute(order: Order & { readonly at: number }): Promise<void> {
  if (order.kind === 'prepare') {
    flowsByWorld.set(order.at, new Flows(order.world, keys));
    return report({ kind: 'done' });
  }
  const flows = flowsByWorld.get(order.at);
  if (flows === undefined) throw new Error('the wallets are not prepared');
  if (order.kind === 'collect') return collectCredentials(flows, order.format, order.count);
  if (order.kind === 'revocable') return addRevocable(flows, order);
  if (order.kind === 'present') return presentAll(flows, order.count);
  flows.rewind();
  report({ kind: 'measured', measured: await drive(flows, order) });
}

async function collectCredentials(flows: Flows, format: Format, count: number): Promise<void> {
  const { all } = flows.held[format];
  await forAllWallets(flows, async () => {
    while (all.length < count) await flows.stockUp(format);
  });
  report({ kind: 'done' });
}

function addRevocable(flows: Flows, { list, count }: Extract<Order, { kind: 'revocable' }>): void {
  const sessions = Array.from({ length: count }, (_, index) => revocableSession(list.id, index + 1));
  flows.statuses.addRevocable(sessions.map((session) => ({ session, listUri: list.uri })));
  report({ kind: 'done' });
}

async function presentAll(flows: Flows, count: number): Promise<void> {
  const turns = [flows.flow('verify'), flows.flow('verify-mdoc')];
  let startedCount = 0;
  await forAllWallets(flows, async (number) => {
    while (startedCount < count) await turns[startedCount++ % turns.length]?.(number);
  });
  report({ kind: 'done' });
}

async function forAllWallets(flows: Flows, work: (number: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: flows.wallets }, (_, number) => work(number)));
}

/** Runs a flow in all wallets; counts what ends inside the measured time. */
async function drive(flows: Flows, { scenario, warmUpMs, measuredMs, windows }: Run): Promise<Measured> {
  const flow = flows.flow(scenario);
  const opens = performance.now() + warmUpMs;
  const closes = opens + measuredMs;
  const latencies: number[] = [];
  const messages = new Map<string, number>();
  let errors = 0;
  const marks = Array.from({ length: windows + 1 }, (_, mark) =>
    pause(warmUpMs + (measuredMs * mark) / windows).then(() => report({ kind: 'mark', flows: latencies.length })),
  );
  const wallet = async (number: number) => {
    for (let startedAt = performance.now(); startedAt < closes; startedAt = performance.now()) {
      try {
        await flow(number);
        const endedAt = performance.now();
        if (endedAt >= opens && endedAt < closes) latencies.push(endedAt - startedAt);
      } catch (error) {
        errors++;
        const message = error instanceof Error ? error.message : String(error);
        if (messages.has(message) || messages.size < MAX_MESSAGES) messages.set(message, (messages.get(message) ?? 0) + 1);
        await pause(AFTER_ERROR_MS);
      }
    }
  };
  // Quick flows can all be over before the last timer had its turn.
  await Promise.all([...marks, forAllWallets(flows, wallet)]);
  latencies.sort((first, second) => first - second);
  const percentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  return {
    flows: latencies.length,
    seconds: measuredMs / 1000,
    p50: percentile(0.5),
    p95: percentile(0.95),
    p99: percentile(0.99),
    errors,
    messages: [...messages],
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function report(message: Report): void {
  process.send?.(message);
}
