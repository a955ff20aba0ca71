import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export type ReceivedByCredo = {
  readonly configurationId: string;
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  /** Whether it could report on it. */
  readonly notified: boolean;
  readonly claims: Readonly<Record<string, unknown>>;
};

type Order = {
  readonly offer: string;
  readonly flow: string;
  /** DER in standard base64. */
  readonly anchors: readonly string[];
};

const folder = new URL('../wallets/credo/', import.meta.url);

/**
 * The second wallet, in a process of its own.
 * @returns undefined where it is not installed; where nothing may be skipped that is an error.
 */
export function credoWallet(): ((order: Order) => Promise<readonly ReceivedByCredo[]>) | undefined {
  if (existsSync(new URL('node_modules', folder))) return receive;
  if (process.env['CI'] === 'true')
    throw new Error('install the second wallet: npm ci --prefix test/wallets/credo');
  console.log('      skipped: the second wallet is not installed (npm ci --prefix test/wallets/credo)');
  return undefined;
}

async function receive(order: Order): Promise<readonly ReceivedByCredo[]> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('wallet.mjs', folder))], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.end(JSON.stringify(order));
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const { credentials, error } = JSON.parse(text.slice(text.lastIndexOf('\n') + 1)) as {
    credentials?: readonly ReceivedByCredo[];
    error?: string;
  };
  if (credentials === undefined) throw new Error(error);
  return credentials;
}
