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

/** A link, or the data of a Digital Credentials API request and the origin of the page that makes it. */
export type AskedOfCredo = { readonly request: string | object; readonly origin?: string };

/** What the verifier answered, or what the page gets to hand to it. */
export type PresentedByCredo =
  | { readonly status: number; readonly body: unknown; readonly data?: undefined }
  | { readonly status?: undefined; readonly data: Readonly<Record<string, unknown>> };

type Order = {
  readonly offer: string;
  readonly flow: string;
  /** Of issuers and verifiers; DER in standard base64. */
  readonly anchors: readonly string[];
  /** What is presented afterwards, in this order. */
  readonly requests?: readonly AskedOfCredo[];
};

type Served = {
  readonly credentials: readonly ReceivedByCredo[];
  readonly presented: readonly PresentedByCredo[];
};

const folder = new URL('../wallets/credo/', import.meta.url);

/**
 * The second wallet, in a process of its own.
 * @returns undefined where it is not installed; where nothing may be skipped that is an error.
 */
export function credoWallet(): ((order: Order) => Promise<Served>) | undefined {
  if (existsSync(new URL('node_modules', folder))) return serve;
  if (process.env['CI'] === 'true')
    throw new Error('install the second wallet: npm ci --prefix test/wallets/credo');
  console.log('      skipped: the second wallet is not installed (npm ci --prefix test/wallets/credo)');
  return undefined;
}

async function serve(order: Order): Promise<Served> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('wallet.mjs', folder))], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.end(JSON.stringify(order));
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const answer = JSON.parse(text.slice(text.lastIndexOf('\n') + 1)) as Served | { readonly error: string };
  if ('error' in answer) throw new Error(answer.error);
  return answer;
}
